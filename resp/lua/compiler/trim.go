package compiler

import glua "github.com/yuin/gopher-lua"

// trim frees what the interpreter's compiler allocated ahead, over 15 KB per function: compiled
// scripts are kept for long.
func trim(p *glua.FunctionProto) {
	p.Code = exactly(p.Code)
	p.Constants = exactly(p.Constants)
	p.FunctionPrototypes = exactly(p.FunctionPrototypes)
	p.DbgSourcePositions = exactly(p.DbgSourcePositions)
	p.DbgLocals = exactly(p.DbgLocals)
	p.DbgCalls = exactly(p.DbgCalls)
	p.DbgUpvalues = exactly(p.DbgUpvalues)
	for _, inner := range p.FunctionPrototypes {
		trim(inner)
	}
}

// exactly returns a slice whose array has no room for more.
func exactly[E any](list []E) []E { return append(make([]E, 0, len(list)), list...) }
