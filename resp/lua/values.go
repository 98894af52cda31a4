package lua

import (
	"unsafe"

	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/lua/interior"
)

// scratch has space for the first numbers, strings and tables that the libraries make in a run:
// most scripts need no more. The next run uses it again, which is safe because nothing of a script
// outlives it, see State.
type scratch struct {
	numbers [64]glua.LNumber
	strings [32]glua.LString
	tables  [8]*glua.LTable
	text    [1 << 10]byte // of short strings

	usedNumbers, usedStrings, usedTables, usedText int
}

// clone returns a copy of a text. A short one ends with the run.
func (a *scratch) clone(text []byte) string {
	if len(text) > len(a.text)-a.usedText {
		return string(text)
	}
	b := a.text[a.usedText:]
	a.usedText += copy(b, text)
	return unsafe.String(unsafe.SliceData(b), len(text))
}

// smallNumbers are the integers from 0 on.
var smallNumbers = func() (list [256]glua.LValue) {
	for i := range list {
		list[i] = glua.LNumber(i)
	}
	return list
}()

var (
	anyNumber glua.LValue = glua.LNumber(0)
	anyString glua.LValue = glua.LString("")
)

// at returns an interface with the type of v, and the value that p points to.
func at(v glua.LValue, p unsafe.Pointer) glua.LValue {
	(*[2]unsafe.Pointer)(unsafe.Pointer(&v))[1] = p
	return v
}

func (a *scratch) number(f float64) glua.LValue {
	if f > 0 && f < float64(len(smallNumbers)) && f == float64(int(f)) {
		return smallNumbers[int(f)]
	}
	if a.usedNumbers == len(a.numbers) {
		return glua.LNumber(f)
	}
	p := &a.numbers[a.usedNumbers]
	a.usedNumbers++
	*p = glua.LNumber(f)
	return at(anyNumber, unsafe.Pointer(p))
}

func (a *scratch) string(s string) glua.LValue {
	if a.usedStrings == len(a.strings) {
		return glua.LString(s)
	}
	p := &a.strings[a.usedStrings]
	a.usedStrings++
	*p = glua.LString(s)
	return at(anyString, unsafe.Pointer(p))
}

// maxKeptList is the size of the array of a table that is used again, at most.
const maxKeptList = 64

// list returns an empty table for n values.
func (a *scratch) list(n int) *glua.LTable {
	if a.usedTables == len(a.tables) || n > maxKeptList {
		return newList(n)
	}
	p := &a.tables[a.usedTables]
	a.usedTables++
	if *p == nil {
		*p = newList(n)
	}
	return *p
}

func newList(n int) *glua.LTable {
	t := &glua.LTable{Metatable: glua.LNil}
	*interior.ArrayOf(t) = make([]glua.LValue, 0, n)
	return t
}

// reset makes it empty, and the space for numbers that the interpreter L has.
func (a *scratch) reset(L *glua.LState) {
	interior.ReuseNumbers(L)
	clear(a.strings[:a.usedStrings])
	for _, t := range a.tables[:a.usedTables] {
		emptyList(t)
	}
	a.usedNumbers, a.usedStrings, a.usedTables, a.usedText = 0, 0, 0, 0
}

// emptyList removes all that a script has put into a table; its array is kept if it is small.
func emptyList(t *glua.LTable) {
	array := *interior.ArrayOf(t)
	clear(array)
	*t = glua.LTable{Metatable: glua.LNil}
	if cap(array) <= maxKeptList {
		*interior.ArrayOf(t) = array[:0]
	}
}

// element returns t[i], without metamethods.
func element(t *glua.LTable, i int) glua.LValue {
	if i < 1 || i >= glua.MaxArrayIndex {
		return t.RawGet(glua.LNumber(i))
	}
	return t.RawGetInt(i)
}

func call(L *glua.LState, fn glua.LValue, args ...glua.LValue) glua.LValue {
	L.Push(fn)
	for _, v := range args {
		L.Push(v)
	}
	L.Call(len(args), 1)
	result := L.Get(-1)
	L.Pop(1)
	return result
}

// push pushes a string, and pushNumber a number, as results of a function.
func (st *State) push(L *glua.LState, s string) int {
	L.Push(st.scratch.string(s))
	return 1
}

func (st *State) pushInt(L *glua.LState, n int) int { return st.pushNumber(L, float64(n)) }

func (st *State) pushNumber(L *glua.LState, f float64) int {
	L.Push(st.scratch.number(f))
	return 1
}
