// Package interior reaches what the interpreter keeps to itself: the instruction that runs and the
// variables it names, registers, and the arrays of tables.
package interior

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unsafe"

	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/lua/compiler"
)

// Messages of the interpreter in the words of Lua 5.1, which name the variable: `attempt to index
// local 'x' (a nil value)`. The interpreter has other words, and no public way to the instruction
// that failed; it is read by reflection, and a test fails if it is not where it was.

var (
	indexFault   = regexp.MustCompile(`^(.*?: )?attempt to index a non-table object\((\w+)\) with key '(?s:.*)'$`)
	callFault    = regexp.MustCompile(`^(.*?: )?attempt to call a non-function object$`)
	arithFault   = regexp.MustCompile(`^(.*?: )?cannot perform (\w+) operation between (\w+) and (\w+)$`)
	unaryFault   = regexp.MustCompile(`^(.*?: )?__unm undefined$`)
	lengthFault  = regexp.MustCompile(`^(.*?: )?__len undefined$`)
	compareFault = regexp.MustCompile(`^(.*?: )?attempt to compare (\w+) with (\w+)$`)
	forFault     = regexp.MustCompile(`^(.*?: )?for statement (init|limit|step) must be a number$`)
	DepthFault   = regexp.MustCompile(`^(.*?: )?(stack overflow|registry overflow|lua callstack overflow)(?s:.*)$`)
)

// longestFault is how long a message of the interpreter may be: what is longer is a script's.
const longestFault = 4 << 10

// InWords returns a message of the interpreter as Lua words it. L is where it was raised, level the
// frame.
func InWords(L *glua.LState, level int, text string) string {
	if len(text) > longestFault {
		return text
	}
	if !strings.Contains(text, "attempt to") && !strings.Contains(text, "cannot perform") &&
		!strings.Contains(text, "__") && !strings.Contains(text, "for statement") &&
		!strings.Contains(text, "overflow") {
		if strings.HasPrefix(text, "runtime error:") {
			return "internal error"
		}
		return text
	}
	f := frameAt(L, level)
	if m := indexFault.FindStringSubmatch(text); m != nil {
		at := f.indexed()
		if f.typeOf(L, at) != m[2] {
			at = -1 // a value that a metatable has
		}
		return m[1] + "attempt to index " + f.describe(at, m[2])
	}
	if m := callFault.FindStringSubmatch(text); m != nil {
		return m[1] + "attempt to call " + f.describe(f.called(), f.calledType(L))
	}
	if m := arithFault.FindStringSubmatch(text); m != nil {
		side, kind := 0, m[3]
		if kind == "number" || kind == "string" && m[4] != "number" && m[4] != "string" {
			side, kind = 1, m[4]
		}
		return m[1] + "attempt to perform arithmetic on " + f.describe(f.operand(side), kind)
	}
	if m := unaryFault.FindStringSubmatch(text); m != nil {
		return m[1] + "attempt to perform arithmetic on " + f.describe(f.operand(0), f.typeOf(L, f.operand(0)))
	}
	if m := lengthFault.FindStringSubmatch(text); m != nil {
		return m[1] + "attempt to get length of " + f.describe(f.operand(0), f.typeOf(L, f.operand(0)))
	}
	if m := compareFault.FindStringSubmatch(text); m != nil && m[2] == m[3] {
		return m[1] + "attempt to compare two " + m[2] + " values"
	}
	if m := forFault.FindStringSubmatch(text); m != nil {
		word := map[string]string{"init": "initial value", "limit": "limit", "step": "step"}[m[2]]
		return m[1] + "'for' " + word + " must be a number"
	}
	if m := DepthFault.FindStringSubmatch(text); m != nil {
		if m[1] == "" {
			m[1] = Where(L)
		}
		return m[1] + "stack overflow"
	}
	return text
}

// Where returns the position of the innermost function of Lua, as messages begin with it.
func Where(L *glua.LState) string {
	if line, fn := LineAt(L); line > 0 {
		return fmt.Sprintf("%s:%d: ", fn.SourceName, line)
	}
	return ""
}

// LineAt returns the innermost function of Lua, and its line; 0: there is none.
func LineAt(L *glua.LState) (line int, fn *glua.FunctionProto) {
	for level := 0; ; level++ {
		dbg, ok := L.GetStack(level)
		if !ok {
			return 0, nil
		}
		v, err := L.GetInfo("fSl", dbg, glua.LNil)
		if f, ok := v.(*glua.LFunction); ok && err == nil && dbg.CurrentLine > 0 {
			return dbg.CurrentLine, f.Proto
		}
	}
}

// frame is a function that runs, and the instruction at which it is.
type frame struct {
	fn   *glua.LFunction
	pc   int
	base int // register 0
}

func frameAt(L *glua.LState, level int) (f frame) {
	for ; ; level++ {
		dbg, ok := L.GetStack(level)
		if !ok {
			return frame{}
		}
		fn, err := L.GetInfo("f", dbg, glua.LNil)
		if f.fn, ok = fn.(*glua.LFunction); err != nil || !ok || f.fn.IsG {
			continue
		}
		private := reflect.ValueOf(dbg).Elem().FieldByName("frame").Elem()
		f.pc = int(private.FieldByName("Pc").Int()) - 1
		f.base = int(private.FieldByName("LocalBase").Int())
		return f
	}
}

func (f frame) instruction(pc int) (op, a, b, c, bx int) {
	if f.fn == nil || pc < 0 || pc >= len(f.fn.Proto.Code) {
		return -1, 0, 0, 0, 0
	}
	i := f.fn.Proto.Code[pc]
	return int(i >> 26), int(i>>18) & 0xff, int(i & 0x1ff), int(i>>9) & 0x1ff, int(i & 0x3ffff)
}

const constantBit = 256 // of an operand that is a constant, not a register

// indexed returns the register of the table of the instruction; -1: none.
func (f frame) indexed() int {
	op, a, b, _, _ := f.instruction(f.pc)
	switch op {
	case glua.OP_GETTABLE, glua.OP_GETTABLEKS, glua.OP_SELF:
		return b
	case glua.OP_SETTABLE, glua.OP_SETTABLEKS:
		return a
	}
	return -1
}

func (f frame) called() int {
	op, a, _, _, _ := f.instruction(f.pc)
	switch op {
	case glua.OP_CALL, glua.OP_TAILCALL:
		return a
	}
	return -1
}

func (f frame) operand(side int) int {
	_, _, b, c, _ := f.instruction(f.pc)
	if side == 1 {
		b = c
	}
	if b >= constantBit {
		return -1
	}
	return b
}

func (f frame) calledType(L *glua.LState) string {
	if op, a, _, _, _ := f.instruction(f.pc); op == glua.OP_TFORLOOP {
		return f.typeOf(L, a)
	}
	return f.typeOf(L, f.called())
}

func (f frame) typeOf(L *glua.LState, register int) string {
	if v := registerValue(L, f.base+register); register >= 0 && v != nil {
		return v.Type().String()
	}
	return "nil"
}

// describe returns the words for the value in a register: with its name, if it has one.
func (f frame) describe(register int, kind string) string {
	kind = cmp.Or(kind, "nil")
	if name := f.nameOf(register, f.pc); name != "" {
		return name + " (a " + kind + " value)"
	}
	return "a " + kind + " value"
}

// nameOf returns the name of what a register holds at an instruction, with its kind, or "".
func (f frame) nameOf(register, pc int) string {
	if f.fn == nil || register < 0 {
		return ""
	}
	p := f.fn.Proto
	if name := localName(p, register, pc); name != "" && name[0] != '(' && name[0] != ' ' {
		return scoped("local", name)
	}
	for at := pc - 1; at >= 0; at-- {
		op, a, b, c, bx := f.instruction(at)
		if a != register || op == glua.OP_SETTABLE || op == glua.OP_SETTABLEKS || op == glua.OP_SETUPVAL ||
			op == glua.OP_TEST || op == glua.OP_SETGLOBAL || op == glua.OP_JMP || op == glua.OP_EQ ||
			op == glua.OP_LT || op == glua.OP_LE {
			continue
		}
		switch op {
		case glua.OP_MOVE:
			if b < register {
				return f.nameOf(b, at)
			}
		case glua.OP_GETGLOBAL:
			return "global '" + constant(p, bx) + "'"
		case glua.OP_GETUPVAL:
			if b < len(p.DbgUpvalues) {
				return scoped("upvalue", p.DbgUpvalues[b])
			}
		case glua.OP_GETTABLE, glua.OP_GETTABLEKS:
			return "field '" + f.key(c) + "'"
		case glua.OP_SELF:
			return "method '" + f.key(c) + "'"
		}
		return ""
	}
	return ""
}

// localName returns the name of the local variable in a register at an instruction, or "".
func localName(p *glua.FunctionProto, register, pc int) string {
	for _, v := range p.DbgLocals {
		if v.StartPc > pc {
			break
		}
		if pc < v.EndPc {
			if register == 0 {
				return v.Name
			}
			register--
		}
	}
	return ""
}

// scoped returns the words for a variable. Globals may be parameters, see given.
func scoped(kind, name string) string {
	if slices.Contains(compiler.Given, name) {
		kind = "global"
	}
	return kind + " '" + name + "'"
}

func (f frame) key(operand int) string {
	if operand >= constantBit {
		return constant(f.fn.Proto, operand-constantBit)
	}
	return "?"
}

func constant(p *glua.FunctionProto, i int) string {
	if i < len(p.Constants) {
		if s, ok := p.Constants[i].(glua.LString); ok {
			return string(s)
		}
	}
	return "?"
}

// Argument returns the words for an argument of the library function that runs, with its name if it
// has one.
func Argument(L *glua.LState, n int, kind string) string {
	f := frameAt(L, 1)
	r := f.called()
	if r >= 0 {
		r += n
	}
	return f.describe(r, kind)
}

// Operand returns the words for the left (0) or the right (1) operand of the instruction that has
// called the metamethod that runs, with its name if it has one.
func Operand(L *glua.LState, side int, kind string) string {
	f := frameAt(L, 1)
	return f.describe(f.operand(side), kind)
}

// FunctionName returns the name by which the library function that runs was called.
func FunctionName(L *glua.LState) (name string, method bool) {
	if !CallerIsLua(L) {
		return "?", false
	}
	f := frameAt(L, 1)
	kind, quoted, found := strings.Cut(f.nameOf(f.called(), f.pc), " ")
	if !found {
		return "?", false
	}
	return strings.Trim(quoted, "'"), kind == "method"
}

// What the interpreter keeps to itself, by the offsets of its fields.
var (
	registryOffset = fieldOf[glua.LState]("reg").Offset
	registryArray  = fieldOf[glua.LState]("reg").Type.Elem()
	topOffset      = must(registryArray.FieldByName("top")).Offset
	valuesOffset   = must(registryArray.FieldByName("array")).Offset
	openOffset     = fieldOf[glua.LState]("uvcache").Offset
	frameOffset    = fieldOf[glua.LState]("currentFrame").Offset
	handledOffset  = fieldOf[glua.LState]("hasErrorFunc").Offset
	resultsOffset  = must(fieldOf[glua.LState]("currentFrame").Type.Elem().FieldByName("NRet")).Offset
	arrayOffset    = fieldOf[glua.LTable]("array").Offset
	allocOffset    = fieldOf[glua.LState]("alloc").Offset
	blockOffset    = must(fieldOf[glua.LState]("alloc").Type.Elem().FieldByName("fptrs")).Offset
	nextOffset     = fieldOf[glua.Upvalue]("next").Offset
	indexOffset    = fieldOf[glua.Upvalue]("index").Offset
)

func fieldOf[T any](name string) reflect.StructField {
	return must(reflect.TypeFor[T]().FieldByName(name))
}

func must(f reflect.StructField, found bool) reflect.StructField {
	if !found {
		panic("interior: the interpreter has changed: a field is missing")
	}
	return f
}

func private[T any](p unsafe.Pointer, offset uintptr) T { return *(*T)(unsafe.Add(p, offset)) }

// StackTop returns the number of registers in use.
func StackTop(L *glua.LState) int {
	return private[int](private[unsafe.Pointer](unsafe.Pointer(L), registryOffset), topOffset)
}

// Wanted reports whether the caller of the library function that runs uses its results.
func Wanted(L *glua.LState) bool {
	return private[int](private[unsafe.Pointer](unsafe.Pointer(L), frameOffset), resultsOffset) != 0
}

// Registers returns how many registers a thread has space for.
func Registers(L *glua.LState) int {
	return cap(private[[]glua.LValue](private[unsafe.Pointer](unsafe.Pointer(L), registryOffset), valuesOffset))
}

// registerValue returns the value of a register; nil: it is not in use.
func registerValue(L *glua.LState, at int) glua.LValue {
	values := private[[]glua.LValue](private[unsafe.Pointer](unsafe.Pointer(L), registryOffset), valuesOffset)
	if at < 0 || at >= len(values) {
		return nil
	}
	return values[at]
}

// CloseUpvalues closes the upvalues of registers from base on, while they have their values. The
// interpreter closes all of them when an error is raised, also those of functions that go on.
func CloseUpvalues(L *glua.LState, base int) {
	for u := private[*glua.Upvalue](unsafe.Pointer(L), openOffset); u != nil; {
		if private[int](unsafe.Pointer(u), indexOffset) >= base {
			u.Close()
		}
		u = private[*glua.Upvalue](unsafe.Pointer(u), nextOffset)
	}
}

// HasHandler returns whether errors are handled before the stack is unwound. The interpreter
// forgets that when a protected call ends, also for the calls around it. Without a handler, it
// closes all upvalues when an error is raised.
func HasHandler(L *glua.LState) *bool {
	return (*bool)(unsafe.Add(unsafe.Pointer(L), handledOffset))
}

// CallerIsLua reports whether the library function that runs was called by a function of Lua, which
// has lines, and not by pcall.
func CallerIsLua(L *glua.LState) bool {
	dbg, ok := L.GetStack(1)
	if !ok {
		return false
	}
	fn, err := L.GetInfo("f", dbg, glua.LNil)
	caller, isFunction := fn.(*glua.LFunction)
	return err == nil && isFunction && !caller.IsG
}

// ArrayOf returns the array of a table.
func ArrayOf(t *glua.LTable) *[]glua.LValue {
	return (*[]glua.LValue)(unsafe.Add(unsafe.Pointer(t), arrayOffset))
}

// ReuseNumbers makes the space for numbers empty that the interpreter has.
func ReuseNumbers(L *glua.LState) {
	numbers := (*[]float64)(unsafe.Add(private[unsafe.Pointer](unsafe.Pointer(L), allocOffset), blockOffset))
	*numbers = (*numbers)[:0]
}
