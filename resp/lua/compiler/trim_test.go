package compiler

import (
	"testing"

	"github.com/stretchr/testify/require"
	glua "github.com/yuin/gopher-lua"
)

// A compiled script keeps no memory that the interpreter's compiler allocated ahead.
func TestCompiledSize(t *testing.T) {
	script, err := Compile(`
		local function twice(n) return (function() return 2 * n end)() end
		for i = 1, 3 do redis.call("SET", KEYS[1], twice(i)) end
		return tostring(ARGV[1])`)
	require.NoError(t, err)
	functions := 0
	var check func(p *glua.FunctionProto)
	check = func(p *glua.FunctionProto) {
		functions++
		room := cap(p.Code) - len(p.Code) + cap(p.Constants) - len(p.Constants) +
			cap(p.FunctionPrototypes) - len(p.FunctionPrototypes) +
			cap(p.DbgSourcePositions) - len(p.DbgSourcePositions) + cap(p.DbgLocals) - len(p.DbgLocals) +
			cap(p.DbgCalls) - len(p.DbgCalls) + cap(p.DbgUpvalues) - len(p.DbgUpvalues)
		require.Zero(t, room, "line %d", p.LineDefined)
		for _, inner := range p.FunctionPrototypes {
			check(inner)
		}
	}
	check(script.Proto)
	require.Equal(t, 3, functions)
}
