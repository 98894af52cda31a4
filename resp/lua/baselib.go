package lua

import (
	"fmt"
	"strings"

	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/lua/compiler"
	"rlserver/resp/lua/interior"
	"rlserver/resp/lua/number"
)

// function is a function of a library.
type function func(st *State, L *glua.LState) int

var baseFunctions = map[string]function{
	"assert": baseAssert, "collectgarbage": returns(glua.LNumber(0)), "error": baseError, "gcinfo": baseGCInfo,
	"getmetatable": baseGetMetatable, "ipairs": baseIpairs, "load": baseLoad, "loadstring": baseLoadString,
	"next": baseNext, "pairs": basePairs, "pcall": basePcall, "rawequal": baseRawEqual, "rawget": baseRawGet,
	"rawset": baseRawSet, "select": baseSelect, "setmetatable": baseSetMetatable, "tonumber": baseToNumber,
	"tostring": baseToString, "type": baseType, "unpack": baseUnpack, "xpcall": baseXpcall,
	"__redis__err__handler": func(_ *State, L *glua.LState) int { return 1 },
}

// libraries are the functions and constants of each library; "": of none.
var libraries = map[string]struct {
	functions map[string]function
	constants map[string]glua.LValue
}{
	"": {baseFunctions, nil}, "string": {stringFunctions, nil}, "table": {tableFunctions, nil},
	"math": {mathFunctions, mathConstants}, "bit": {bitFunctions, nil}, "struct": {structFunctions, nil},
	"cmsgpack": {packFunctions, packConstants}, "cjson": {jsonFunctions, jsonConstants},
	"redis": {redisFunctions, redisConstants},
}

// returns makes a function that returns a value.
func returns(v glua.LValue) function {
	return func(_ *State, L *glua.LState) int {
		L.Push(v)
		return 1
	}
}

// open fills the globals.
func (st *State) open() {
	L := st.L
	st.globals = L.G.Global
	st.handler = st.function(handleError)
	noop, err := compiler.Compile("")
	if err != nil {
		panic(err)
	}
	st.noop, st.main = L.NewFunctionFromProto(noop.Proto), L.NewFunctionFromProto(noop.Proto)
	st.null = L.NewUserData()
	st.json = defaultJSON
	st.keys, st.argv = newList(0), newList(0)
	st.globals.RawSetString("KEYS", st.keys)
	st.globals.RawSetString("ARGV", st.argv)

	st.globals.RawSetString("_G", st.globals)
	st.globals.RawSetString("_VERSION", glua.LString("Lua 5.1"))
	for name, lib := range libraries {
		st.library(name, lib.functions, lib.constants)
	}
	st.globals.RawGetString("cjson").(*glua.LTable).RawSetString("null", st.null)
	st.openCoroutines()
	st.openStrings()
	st.seal()
	helpers := map[string]function{
		compiler.Concat: concat, compiler.SetElement: setElement, compiler.Guard: guard, compiler.Key: guardKey,
		compiler.Charge: chargeTable, compiler.Bound: bound, compiler.Extend: extend,
	}
	st.values = make([]glua.LValue, len(compiler.Given))
	for i, name := range compiler.Given {
		st.values[i] = glua.LNil
		if fn := helpers[name]; fn != nil {
			st.values[i] = st.function(fn)
		} else if name == compiler.Globals {
			all := L.CreateTable(0, 0) // assignments to globals go to it: each is an error
			st.values[i], all.Metatable = all, st.refusing()
		} else if v := st.globals.RawGetString(name); v != glua.LNil {
			st.values[i] = v
		}
	}
}

func init() {
	for _, lib := range libraries {
		for name := range lib.functions {
			compiler.Reserved[name] = true
		}
		for name := range lib.constants {
			compiler.Reserved[name] = true
		}
	}
	for _, name := range []string{
		"null", "create", "resume", "running", "status", "wrap", "yield", "__index", "__newindex", "__metatable",
		"__add", "__sub", "__mul", "__div", "__mod", "__pow", "__unm", "_G", "KEYS", "ARGV", "string", "table", "math",
		"bit", "struct", "cmsgpack", "cjson", "redis", "coroutine", "server",
	} {
		compiler.Reserved[name] = true
	}
}

func (st *State) function(fn function) *glua.LFunction {
	return st.L.NewFunction(func(L *glua.LState) int { return fn(st, L) })
}

func (st *State) library(name string, functions map[string]function, values map[string]glua.LValue) {
	t := st.globals
	if name != "" {
		t = st.L.CreateTable(0, len(functions)+len(values))
		st.globals.RawSetString(name, t)
	}
	for name, fn := range functions {
		t.RawSetString(name, st.function(fn))
	}
	for name, v := range values {
		t.RawSetString(name, v)
	}
}

const errReadonly = "Attempt to modify a readonly table"

// seal makes the globals and the libraries read-only.
func (st *State) seal() {
	st.refusal = st.function(func(_ *State, L *glua.LState) int {
		L.Error(glua.LString(errReadonly), 1)
		return 0
	})
	st.globals.ForEach(func(_, v glua.LValue) {
		if t, ok := v.(*glua.LTable); ok && t != st.globals && t != st.keys && t != st.argv {
			t.Metatable = st.refusing()
			st.readonly[t] = true
		}
	})
	mt := st.refusing()
	mt.RawSetString("__index", st.function(func(_ *State, L *glua.LState) int {
		name := "nil"
		if v, ok := L.Get(2).(glua.LString); ok {
			name = string(v)
		}
		L.Error(glua.LString("Script attempted to access nonexistent global variable '"+name+"'"), 1)
		return 0
	}))
	st.globals.Metatable = mt
	st.readonly[st.globals] = true
	// the metatables that scripts can get: of the globals, and of strings
	closed := st.refusing()
	mt.Metatable = closed
	st.L.GetMetatable(glua.LString("")).(*glua.LTable).Metatable = closed
}

// refusing returns a metatable, itself read-only, that makes each new element an error.
func (st *State) refusing() *glua.LTable {
	mt := st.L.CreateTable(0, 1)
	mt.RawSetString("__newindex", st.refusal)
	st.readonly[mt] = true
	return mt
}

// raise raises an error at the position of the caller.
func raise(L *glua.LState, format string, args ...any) int {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	if interior.CallerIsLua(L) {
		format = interior.Where(L) + format
	}
	L.Error(glua.LString(format), 0)
	return 0
}

// argError raises an error about an argument of the function that runs.
func argError(L *glua.LState, n int, text string) int {
	name, method := interior.FunctionName(L)
	if method {
		if n--; n == 0 {
			return raise(L, "calling '%s' on bad self (%s)", name, text)
		}
	}
	return raise(L, "bad argument #%d to '%s' (%s)", n, name, text)
}

func typeError(L *glua.LState, n int, want string) int {
	got := "no value"
	if n <= L.GetTop() {
		got = L.Get(n).Type().String()
	}
	return argError(L, n, want+" expected, got "+got)
}

func checkAny(L *glua.LState, n int) glua.LValue {
	if n > L.GetTop() {
		argError(L, n, "value expected")
	}
	return L.Get(n)
}

func checkTable(L *glua.LState, n int) *glua.LTable {
	t, ok := L.Get(n).(*glua.LTable)
	if !ok {
		typeError(L, n, "table")
	}
	return t
}

// checkString takes a string or a number.
func checkString(st *State, L *glua.LState, n int) string {
	switch v := L.Get(n).(type) {
	case glua.LString:
		return string(v)
	case glua.LNumber:
		return number.Text(float64(v))
	}
	typeError(L, n, "string")
	return ""
}

func checkNumber(L *glua.LState, n int) float64 {
	if f, ok := asNumber(L.Get(n)); ok {
		return f
	}
	typeError(L, n, "number")
	return 0
}

func asNumber(v glua.LValue) (float64, bool) {
	switch v := v.(type) {
	case glua.LNumber:
		return float64(v), true
	case glua.LString:
		return number.Parse(string(v))
	}
	return 0, false
}

func checkInt(L *glua.LState, n int) int { return number.Int(checkNumber(L, n)) }

func optInt(L *glua.LState, n, otherwise int) int {
	if L.Get(n) == glua.LNil {
		return otherwise
	}
	return checkInt(L, n)
}

func optString(st *State, L *glua.LState, n int, otherwise string) string {
	if L.Get(n) == glua.LNil {
		return otherwise
	}
	return checkString(st, L, n)
}

// textOf returns a value as tostring does, without metamethods.
func (st *State) textOf(v glua.LValue) string {
	switch v := v.(type) {
	case glua.LNumber:
		return number.Text(float64(v))
	case *glua.LUserData:
		if v == st.null {
			return "userdata: (nil)"
		}
	case *glua.LFunction:
		if v.IsG {
			return fmt.Sprintf("function: builtin: %p", v)
		}
	}
	return v.String()
}

// handleError is called where an error was raised, before the stack is unwound.
func handleError(st *State, L *glua.LState) int {
	if st.watch.dead != "" {
		return 1
	}
	v := L.Get(1)
	st.errorLine, st.errorIn = interior.LineAt(L)
	if s, ok := v.(glua.LString); ok {
		v = glua.LString(interior.InWords(L, 1, string(s)))
	}
	L.SetTop(0)
	L.Push(v)
	return 1
}

// protect calls the function below n arguments on the stack.
func (st *State) protect(L *glua.LState, n, results int, handler *glua.LFunction) (err error) {
	base := interior.StackTop(L) - n - 1
	within := handler
	if handler == st.handler {
		within = st.L.NewFunction(func(L *glua.LState) int {
			interior.CloseUpvalues(L, base+1)
			return handleError(st, L)
		})
	}
	handled := interior.HasHandler(L)
	before := *handled
	err = L.PCall(n, results, within)
	*handled = before
	st.watch.raiseIfDead()
	if err != nil {
		L.Push(st.noop)
		L.Call(0, 0) // unlinks the upvalues that were closed
	}
	return err
}

// callable makes the first argument a function that raises an error, if it cannot be called: the
// interpreter would call that an error of pcall.
func (st *State) callable(L *glua.LState) {
	v := checkAny(L, 1)
	if _, ok := v.(*glua.LFunction); ok {
		return
	}
	if _, ok := L.GetMetaField(v, "__call").(*glua.LFunction); !ok {
		L.Replace(1, st.function(func(_ *State, L *glua.LState) int { return uncallable(L, v) }))
	}
}

// uncallable raises the error for a value that a library function cannot call.
func uncallable(L *glua.LState, v glua.LValue) int {
	L.Error(glua.LString("attempt to call a "+v.Type().String()+" value"), 0)
	return 0
}

func basePcall(st *State, L *glua.LState) int {
	st.callable(L)
	err := st.protect(L, L.GetTop()-1, glua.MultRet, st.handler)
	n := outcome(L, err)
	// as in Redis: what it has found for the text
	if err != nil && L.Get(2).Type() == glua.LTTable {
		L.Push(glua.LNil)
		n++
	}
	return n
}

// outcome pushes whether a protected call has succeeded before its results, or before the error.
func outcome(L *glua.LState, err error) int {
	if err == nil {
		L.Insert(glua.LTrue, 1)
		return L.GetTop()
	}
	L.SetTop(0)
	L.Push(glua.LFalse)
	L.Push(raised(err))
	return 2
}

// raised returns the value that a script sees of an error: of redis.call's, the text.
func raised(err error) glua.LValue {
	e, ok := err.(*glua.ApiError)
	if !ok || e.Object == nil {
		return glua.LString(err.Error())
	}
	if t, ok := e.Object.(*glua.LTable); ok {
		if text, ok := t.RawGetString("err").(glua.LString); ok {
			return text
		}
	}
	return e.Object
}

func baseXpcall(st *State, L *glua.LState) int {
	handler := checkAny(L, 2)
	st.callable(L)
	L.SetTop(1)
	base := interior.StackTop(L) - 1
	return outcome(L, st.protect(L, 0, glua.MultRet, L.NewFunction(func(L *glua.LState) int {
		interior.CloseUpvalues(L, base+1)
		handleError(st, L)
		v := L.Get(-1)
		if st.watch.dead != "" {
			return 1
		}
		L.SetTop(0)
		L.Push(handler)
		L.Push(v)
		L.Call(1, 1)
		return 1
	})))
}

func baseAssert(st *State, L *glua.LState) int {
	if glua.LVAsBool(checkAny(L, 1)) {
		return L.GetTop()
	}
	return raise(L, "%s", optString(st, L, 2, "assertion failed!"))
}

func baseError(st *State, L *glua.LState) int {
	level := optInt(L, 2, 1)
	v := L.Get(1)
	if n, ok := v.(glua.LNumber); ok {
		v = glua.LString(st.textOf(n))
	}
	if s, ok := v.(glua.LString); ok && level > 0 {
		v = glua.LString(positionOf(L, level) + string(s))
	}
	L.Error(v, 0)
	return 0
}

// positionOf returns the position of the function at a level, as messages begin with it; "": it is
// a library function.
func positionOf(L *glua.LState, level int) string {
	dbg, ok := L.GetStack(level)
	if !ok {
		return ""
	}
	if _, err := L.GetInfo("Sl", dbg, glua.LNil); err != nil || dbg.CurrentLine <= 0 {
		return ""
	}
	return fmt.Sprintf("%s:%d: ", dbg.Source, dbg.CurrentLine)
}

func baseGCInfo(st *State, L *glua.LState) int {
	st.pushInt(L, 64)
	st.pushInt(L, 0)
	return 2
}

func baseGetMetatable(st *State, L *glua.LState) int {
	v := checkAny(L, 1)
	if t, ok := v.(*glua.LTable); ok && st.readonly[t] && t != st.globals {
		L.Push(glua.LNil)
		return 1
	}
	L.Push(L.GetMetatable(v))
	if mt, ok := L.Get(-1).(*glua.LTable); ok {
		if shown := mt.RawGetString("__metatable"); shown != glua.LNil {
			L.Push(shown)
		}
	}
	return 1
}

func baseSetMetatable(st *State, L *glua.LState) int {
	t := checkTable(L, 1)
	mt := L.Get(2)
	if mt != glua.LNil && mt.Type() != glua.LTTable || L.GetTop() < 2 {
		return argError(L, 2, "nil or table expected")
	}
	if old, ok := t.Metatable.(*glua.LTable); ok && old.RawGetString("__metatable") != glua.LNil {
		return raise(L, "cannot change a protected metatable")
	}
	if st.readonly[t] {
		return refuse(L)
	}
	t.Metatable = mt
	L.SetTop(1)
	return 1
}

// refuse raises the error for a change of a read-only table by a library function: without a
// position, as in Redis.
func refuse(L *glua.LState) int {
	L.Error(glua.LString(errReadonly), 0)
	return 0
}

func baseIpairs(st *State, L *glua.LState) int {
	t := checkTable(L, 1)
	L.SetTop(0)
	L.Push(st.ipairsNext())
	L.Push(t)
	st.pushInt(L, 0)
	return 3
}

func (st *State) ipairsNext() *glua.LFunction {
	if st.next == nil {
		st.next = st.function(func(st *State, L *glua.LState) int {
			n := int(L.Get(2).(glua.LNumber)) + 1
			v := element(L.Get(1).(*glua.LTable), n)
			if v == glua.LNil {
				L.Push(glua.LNil)
				return 1
			}
			st.pushInt(L, n)
			L.Push(v)
			return 2
		})
	}
	return st.next
}

func baseNext(_ *State, L *glua.LState) int {
	t := checkTable(L, 1)
	key, v := t.Next(L.Get(2))
	L.Push(key)
	if key == glua.LNil {
		return 1
	}
	L.Push(v)
	return 2
}

func basePairs(st *State, L *glua.LState) int {
	t := checkTable(L, 1)
	L.SetTop(0)
	L.Push(st.globals.RawGetString("next"))
	L.Push(t)
	L.Push(glua.LNil)
	return 3
}

func baseRawEqual(_ *State, L *glua.LState) int {
	L.Push(glua.LBool(L.RawEqual(checkAny(L, 1), checkAny(L, 2))))
	return 1
}

func baseRawGet(_ *State, L *glua.LState) int {
	t := checkTable(L, 1)
	L.Push(t.RawGet(checkAny(L, 2)))
	return 1
}

func baseRawSet(st *State, L *glua.LState) int {
	t, key, v := checkTable(L, 1), checkAny(L, 2), checkAny(L, 3)
	if st.readonly[t] {
		return refuse(L)
	}
	checkKey(L, key)
	st.grow(t, key, v)
	t.RawSet(key, v)
	L.SetTop(1)
	return 1
}

func checkKey(L *glua.LState, key glua.LValue) {
	if key == glua.LNil {
		raise(L, "table index is nil")
	}
	if n, ok := key.(glua.LNumber); ok && n != n {
		raise(L, "table index is NaN")
	}
}

func baseSelect(st *State, L *glua.LState) int {
	if s, ok := L.Get(1).(glua.LString); ok && s == "#" {
		return st.pushInt(L, L.GetTop()-1)
	}
	n, top := checkInt(L, 1), L.GetTop()
	switch {
	case n < 0:
		n = top + n
	case n > top:
		n = top
	}
	if n < 1 {
		return argError(L, 1, "index out of range")
	}
	return top - n
}

func baseToNumber(st *State, L *glua.LState) int {
	base := optInt(L, 2, 10)
	if base == 10 {
		v := checkAny(L, 1)
		if s, ok := v.(glua.LString); ok {
			st.watch.step(len(s) / 64)
		}
		if n, ok := v.(glua.LNumber); ok {
			L.Push(n)
		} else if f, ok := asNumber(v); ok {
			st.pushNumber(L, f)
		} else {
			L.Push(glua.LNil)
		}
		return 1
	}
	text := checkString(st, L, 1)
	if base < 2 || base > 36 {
		return argError(L, 2, "base out of range")
	}
	if f, ok := number.ParseInteger(text, base); ok {
		st.pushNumber(L, f)
	} else {
		L.Push(glua.LNil)
	}
	return 1
}

func baseToString(st *State, L *glua.LState) int {
	v := checkAny(L, 1)
	if mt, ok := L.GetMetatable(v).(*glua.LTable); ok {
		if fn, ok := mt.RawGetString("__tostring").(*glua.LFunction); ok {
			L.Push(fn)
			L.Push(v)
			L.Call(1, 1)
			return 1
		} else if other := mt.RawGetString("__tostring"); other != glua.LNil {
			return uncallable(L, other)
		}
	}
	if s, ok := v.(glua.LString); ok {
		L.Push(s)
	} else {
		st.push(L, st.textOf(v))
	}
	return 1
}

func baseType(st *State, L *glua.LState) int {
	v := checkAny(L, 1)
	return st.push(L, v.Type().String())
}

// maxUnpacked is how many values unpack returns at most, as Lua's stack allows.
const maxUnpacked = 7999

func baseUnpack(st *State, L *glua.LState) int {
	t := checkTable(L, 1)
	from := optInt(L, 2, 1)
	to := optInt(L, 3, 0)
	if L.Get(3) == glua.LNil {
		to = t.Len()
	}
	if from > to {
		return 0
	}
	if n := to - from; n >= maxUnpacked {
		return raise(L, "too many results to unpack")
	}
	st.watch.step((to - from) / 16)
	L.SetTop(0)
	for i := from; i <= to; i++ {
		L.Push(element(t, i))
	}
	return to - from + 1
}

func baseLoadString(st *State, L *glua.LState) int {
	source := checkString(st, L, 1)
	return st.load(L, source, optString(st, L, 2, source))
}

func baseLoad(st *State, L *glua.LState) int {
	fn, ok := L.Get(1).(*glua.LFunction)
	if !ok {
		return typeError(L, 1, "function")
	}
	defer st.watch.release(st.watch.reserved)
	var source []byte
	for {
		part := call(L, fn)
		if part == glua.LNil {
			break
		}
		text, ok := part.(glua.LString)
		if !ok {
			return raise(L, "reader function must return a string")
		}
		if text == "" {
			break
		}
		source = st.watch.join(source, string(text))
	}
	return st.load(L, st.watch.text(source), optString(st, L, 2, "=(load)"))
}

// perSource is how many bytes a byte of a chunk takes when it is compiled.
const perSource = 40

// maxShort is the length of a chunk in bytes that takes less than a millisecond to compile.
const maxShort = 1 << 10

// load compiles a chunk.
func (st *State) load(L *glua.LState, source, name string) int {
	name, _, _ = strings.Cut(name, "\x00")
	st.watch.step(len(source) / 4)
	st.watch.charge(perSource*len(source) + len(name))
	st.watch.loaded += int64(perSource*len(source) + len(name)) // also if it is not used any more
	if len(source) > maxShort {
		st.host.Long()
	}
	s, err := compiler.CompileChunk(source, name)
	if err != nil {
		L.Push(glua.LNil)
		st.push(L, err.Error())
		return 2
	}
	st.chunks = append(st.chunks, s)
	L.Push(L.NewFunctionFromProto(s.Proto))
	for _, i := range s.Params {
		L.Push(st.values[i])
	}
	L.Call(len(s.Params), 1)
	return 1
}

// openCoroutines adds the coroutines of the interpreter, whose instructions are counted too.
func (st *State) openCoroutines() {
	L := st.L
	before := st.globals.RawGetString("package")
	L.Push(L.NewFunction(glua.OpenCoroutine))
	L.Push(glua.LString("coroutine"))
	L.Call(1, 0)
	lib := st.globals.RawGetString("coroutine").(*glua.LTable)
	st.globals.RawSetString("package", before)
	resume := lib.RawGetString("resume").(*glua.LFunction)
	lib.RawSetString("resume", st.function(func(st *State, L *glua.LState) int {
		th, ok := L.Get(1).(*glua.LState)
		if !ok {
			return argError(L, 1, "coroutine expected")
		}
		if th.Dead {
			L.Push(glua.LFalse)
			st.push(L, "cannot resume dead coroutine")
			return 2
		}
		if why := unresumable(L, th); why != "" {
			L.Push(glua.LFalse)
			st.push(L, why)
			return 2
		}
		return resume.GFunction(L)
	}))
	create, wrap := lib.RawGetString("create").(*glua.LFunction), lib.RawGetString("wrap").(*glua.LFunction)
	lib.RawSetString("create", st.function(func(st *State, L *glua.LState) int {
		defer st.threadFor(L)()
		n := create.GFunction(L)
		L.Get(-1).(*glua.LState).SetContext(&st.watch)
		return n
	}))
	lib.RawSetString("wrap", st.function(func(st *State, L *glua.LState) int {
		defer st.threadFor(L)()
		n := wrap.GFunction(L)
		fn := L.Get(-1).(*glua.LFunction)
		th, run := fn.Upvalues[0].Value().(*glua.LState), fn.GFunction
		th.SetContext(&st.watch)
		fn.GFunction = func(L *glua.LState) int {
			if why := unresumable(L, th); why != "" {
				return raise(L, "%s", why)
			}
			return run(L)
		}
		return n
	}))
}

// All threads that have resumed each other take Go's stack, whose overflow would end the process:
// their number is bounded, and how many calls each has within each other.
const (
	mostThreads = 100
	threadCalls = 2000
)

// unresumable returns why a thread cannot be resumed by another one; "": it can.
func unresumable(L, th *glua.LState) string {
	switch {
	case th.Dead:
		return "cannot resume dead coroutine"
	case th == L:
		return "cannot resume running coroutine"
	}
	n := 0
	for p := L; p != nil; p = p.Parent {
		if n++; p == th {
			return "cannot resume normal coroutine"
		}
	}
	if n > mostThreads {
		return "C stack overflow"
	}
	return ""
}

// threadFor counts a thread for the first argument, a function of Lua, which is about to be made.
// It returns what is to be called afterwards.
func (st *State) threadFor(L *glua.LState) (made func()) {
	if fn, ok := L.Get(1).(*glua.LFunction); !ok || fn.IsG {
		argError(L, 1, "Lua function expected")
	}
	st.watch.charge(threadBytes)
	calls := L.Options.CallStackSize
	L.Options.CallStackSize = threadCalls
	return func() { L.Options.CallStackSize = calls }
}
