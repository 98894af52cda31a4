package lua

import (
	"slices"

	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/lua/interior"
	"rlserver/resp/lua/number"
)

// The helpers that the compiler inserts, see compiler.

// concat is a chain of `..`.
func concat(st *State, L *glua.LState) int {
	n := L.GetTop()
	size := 32 * n
	for i := 1; i <= n; i++ {
		if text, ok := L.Get(i).(glua.LString); ok {
			size += len(text)
		}
	}
	reserved := st.watch.reserved
	b := st.watch.room(st.join[:0], size)
	for i := 1; i <= n; i++ {
		switch v := L.Get(i).(type) {
		case glua.LString:
			b = appendText(b, string(v))
		case glua.LNumber:
			b = number.Append(b, float64(v), 14)
		default:
			st.watch.release(reserved)
			return st.concatByPairs(L, n)
		}
	}
	L.SetTop(0)
	st.push(L, st.watch.text(b))
	st.watch.release(reserved)
	return 1
}

// concatByPairs joins parts of which some are neither strings nor numbers: from the last to the
// first, as Lua does.
func (st *State) concatByPairs(L *glua.LState, n int) int {
	right := L.Get(n)
	for i := n - 1; i >= 1; i-- {
		left := L.Get(i)
		if a, ok := joinable(left); ok {
			if b, ok := joinable(right); ok {
				st.watch.charge(len(a) + len(b) + perValue)
				right = glua.LString(a + b)
				continue
			}
		}
		fn := L.GetMetaField(left, "__concat")
		if fn == glua.LNil {
			fn = L.GetMetaField(right, "__concat")
		}
		if _, ok := fn.(*glua.LFunction); !ok {
			bad, at := left, i
			if _, ok := joinable(left); ok {
				bad, at = right, i+1
			}
			return raise(L, "attempt to concatenate %s", interior.Argument(L, at, bad.Type().String()))
		}
		right = call(L, fn, left, right)
	}
	L.SetTop(0)
	L.Push(right)
	return 1
}

func joinable(v glua.LValue) (string, bool) {
	switch v := v.(type) {
	case glua.LString:
		return string(v), true
	case glua.LNumber:
		return number.Text(float64(v)), true
	}
	return "", false
}

// setElement is t[k] = v.
func setElement(st *State, L *glua.LState) int {
	t, ok := L.Get(1).(*glua.LTable)
	key, v := L.Get(2), L.Get(3)
	if !ok {
		if L.GetMetaField(L.Get(1), "__newindex") == glua.LNil {
			return raise(L, "attempt to index %s", interior.Argument(L, 1, L.Get(1).Type().String()))
		}
		L.SetTable(L.Get(1), key, v)
		return 0
	}
	if st.readonly[t] {
		return raise(L, errReadonly)
	}
	checkKey(L, key)
	st.grow(t, key, v)
	if t.Metatable == glua.LNil {
		t.RawSet(key, v)
	} else {
		L.SetTable(t, key, v)
	}
	return 0
}

// denseFrom is the index from which on a value that follows no other may make a table much larger:
// the interpreter fills the space in between with nil.
const denseFrom = 64

// grow counts what an assignment lets a table grow by. The space before a value far behind the
// others it makes in one step.
func (st *State) grow(t *glua.LTable, key, v glua.LValue) {
	if n, ok := key.(glua.LNumber); ok && n >= 1 && n < glua.LNumber(glua.MaxArrayIndex) && n == glua.LNumber(int(n)) {
		if n > denseFrom && t.RawGetInt(int(n)) == glua.LNil && t.RawGetInt(int(n)-1) == glua.LNil {
			if list := interior.ArrayOf(t); v != glua.LNil && int(n) > len(*list) {
				more := int(n) - 1 - len(*list)
				st.watch.charge(perValue * more)
				for *list = slices.Grow(*list, more+1); more > 0; more-- {
					*list = append(*list, glua.LNil)
				}
			}
			return
		}
		st.watch.charge(perValue)
		return
	}
	if v == glua.LNil {
		st.watch.lasting += perEntry
	} else {
		st.watch.charge(perEntry)
	}
}

// guard returns the table in which a function is defined, if it may be changed.
func guard(st *State, L *glua.LState) int {
	if t, ok := L.Get(1).(*glua.LTable); ok {
		if st.readonly[t] {
			return raise(L, errReadonly)
		}
		st.grow(t, L.Get(2), glua.LTrue)
	}
	L.SetTop(1)
	return 1
}

// guardKey returns a key of a table that is being made.
func guardKey(st *State, L *glua.LState) int {
	if n, ok := L.Get(1).(glua.LNumber); ok && n > denseFrom && n < glua.LNumber(glua.MaxArrayIndex) {
		st.watch.charge(perValue * int(n))
	} else {
		st.watch.charge(perEntry)
	}
	L.SetTop(1)
	return 1
}

// chargeTable counts a new table or function, and returns it.
func chargeTable(st *State, L *glua.LState) int {
	st.watch.charge(perTable)
	L.SetTop(1)
	return 1
}

// bound returns a bound of a loop, as a number if it is a text that is one.
func bound(st *State, L *glua.LState) int {
	if text, ok := L.Get(1).(glua.LString); ok {
		if f, ok := number.Parse(string(text)); ok {
			return st.pushNumber(L, f)
		}
	}
	L.SetTop(1)
	return 1
}

// extend appends values to a table of n elements that is being made: table, n, value, ….
func extend(st *State, L *glua.LState) int {
	t, n := L.Get(1).(*glua.LTable), int(L.Get(2).(glua.LNumber))
	st.watch.charge(perValue * L.GetTop())
	for i := 3; i <= L.GetTop(); i++ {
		t.RawSetInt(n+i-2, L.Get(i))
	}
	L.SetTop(1)
	return 1
}

func init() {
	// A value at a large index is kept in a map, not in an array with nils before it.
	glua.MaxArrayIndex = 1 << 22
}
