package lua

import (
	"fmt"

	glua "github.com/yuin/gopher-lua"
)

var tableFunctions = map[string]function{
	"concat": tableConcat, "foreach": tableForeach, "foreachi": tableForeachI, "getn": tableGetN,
	"insert": tableInsert, "maxn": tableMaxN, "remove": tableRemove, "setn": tableSetN, "sort": tableSort,
}

func tableConcat(st *State, L *glua.LState) int {
	t, separator := checkTable(L, 1), optString(st, L, 2, "")
	from := optInt(L, 3, 1)
	to := t.Len()
	if L.Get(4) != glua.LNil {
		to = checkInt(L, 4)
	}
	defer st.watch.release(st.watch.reserved)
	out := st.join[:0]
	for i := from; i <= to; i++ {
		text, ok := joinable(element(t, i))
		if !ok {
			return raise(L, "invalid value (%s) at index %d in table for 'concat'",
				element(t, i).Type(), i)
		}
		if out = st.watch.join(out, text); i != to {
			out = st.watch.join(out, separator)
		}
		st.watch.step(1)
	}
	return st.push(L, st.watch.text(out))
}

func tableForeach(st *State, L *glua.LState) int {
	t, fn := checkTable(L, 1), checkFunction(L, 2)
	for key, v := t.Next(glua.LNil); key != glua.LNil; key, v = t.Next(key) {
		st.watch.step(1)
		if done(L, fn, key, v) {
			return 1
		}
	}
	return 0
}

func tableForeachI(st *State, L *glua.LState) int {
	t, fn := checkTable(L, 1), checkFunction(L, 2)
	for i := 1; i <= t.Len(); i++ {
		st.watch.step(1)
		if done(L, fn, glua.LNumber(i), t.RawGetInt(i)) {
			return 1
		}
	}
	return 0
}

// done calls fn, and reports whether it has returned a value, which is then on the stack.
func done(L *glua.LState, fn *glua.LFunction, key, v glua.LValue) bool {
	result := call(L, fn, key, v)
	if result == glua.LNil {
		return false
	}
	L.Push(result)
	return true
}

func checkFunction(L *glua.LState, n int) *glua.LFunction {
	fn, ok := L.Get(n).(*glua.LFunction)
	if !ok {
		typeError(L, n, "function")
	}
	return fn
}

func tableGetN(st *State, L *glua.LState) int {
	return st.pushInt(L, checkTable(L, 1).Len())
}

func tableSetN(_ *State, L *glua.LState) int {
	checkTable(L, 1)
	return raise(L, "'setn' is obsolete")
}

func tableMaxN(st *State, L *glua.LState) int {
	most := glua.LNumber(0)
	t := checkTable(L, 1)
	st.watch.step(t.Len() / 16)
	t.ForEach(func(key, _ glua.LValue) {
		if n, ok := key.(glua.LNumber); ok {
			most = max(most, n)
		}
	})
	L.Push(most)
	return 1
}

func tableInsert(st *State, L *glua.LState) int {
	t := checkTable(L, 1)
	if st.readonly[t] {
		return refuse(L)
	}
	end := t.Len() + 1
	at, v := end, L.Get(2)
	switch L.GetTop() {
	case 2:
	case 3:
		at, v = checkInt(L, 2), L.Get(3)
		end = max(end, at)
	default:
		return raise(L, "wrong number of arguments to 'insert'")
	}
	st.watch.step((end - at) / 8)
	if at == end || at < 1 {
		st.grow(t, glua.LNumber(at), v)
		t.RawSet(glua.LNumber(at), v)
		return 0
	}
	st.watch.charge(perValue)
	if end-1 == t.Len() {
		for i := end; i > at; i-- {
			t.RawSetInt(i, t.RawGetInt(i-1))
		}
	}
	t.RawSetInt(at, v)
	return 0
}

func tableRemove(st *State, L *glua.LState) int {
	t := checkTable(L, 1)
	if st.readonly[t] {
		return refuse(L)
	}
	end := t.Len()
	at := optInt(L, 2, end)
	if at < 1 || at > end {
		return 0
	}
	st.watch.step((end - at) / 8)
	v := t.RawGetInt(at)
	if at == end {
		t.Remove(at)
	} else {
		for i := at; i < end; i++ {
			t.RawSetInt(i, t.RawGetInt(i+1))
		}
		t.RawSetInt(end, glua.LNil)
		if t.MaxN() < end {
			t.Remove(end)
		}
	}
	L.Push(v)
	return 1
}

// sorter is Lua's own quicksort: which elements a comparison sees, and the order of equal ones, are
// those of Redis.
type sorter struct {
	st *State
	L  *glua.LState
	t  *glua.LTable
	fn *glua.LFunction
}

func tableSort(st *State, L *glua.LState) int {
	t := checkTable(L, 1)
	if st.readonly[t] {
		return refuse(L)
	}
	s := sorter{st: st, L: L, t: t}
	if L.Get(2) != glua.LNil {
		s.fn = checkFunction(L, 2)
	}
	s.sort(1, t.Len())
	return 0
}

func (s *sorter) less(a, b glua.LValue) bool {
	s.st.watch.step(1)
	if s.fn == nil {
		s.comparable(a, b)
		return s.L.LessThan(a, b)
	}
	return glua.LVAsBool(call(s.L, s.fn, a, b))
}

// comparable raises the error for values that `<` does not compare: without a position, unlike the
// operator.
func (s *sorter) comparable(a, b glua.LValue) {
	kind, other := a.Type(), b.Type()
	switch {
	case kind != other:
		s.L.Error(glua.LString(fmt.Sprintf("attempt to compare %s with %s", kind, other)), 0)
	case kind == glua.LTNumber, kind == glua.LTString:
	default:
		if fn := s.L.GetMetaField(a, "__lt"); fn == glua.LNil || fn != s.L.GetMetaField(b, "__lt") {
			s.L.Error(glua.LString(fmt.Sprintf("attempt to compare two %s values", kind)), 0)
		}
	}
}

func (s *sorter) get(i int) glua.LValue { return element(s.t, i) }

func (s *sorter) swap(i, j int) {
	a, b := s.get(i), s.get(j)
	s.t.RawSetInt(i, b)
	s.t.RawSetInt(j, a)
}

func (s *sorter) sort(lo, hi int) {
	for lo < hi {
		if s.less(s.get(hi), s.get(lo)) {
			s.swap(lo, hi)
		}
		if hi-lo == 1 {
			return
		}
		mid := (lo + hi) / 2
		if s.less(s.get(mid), s.get(lo)) {
			s.swap(mid, lo)
		} else if s.less(s.get(hi), s.get(mid)) {
			s.swap(mid, hi)
		}
		if hi-lo == 2 {
			return
		}
		pivot := s.get(mid)
		s.swap(mid, hi-1)
		i, j := lo, hi-1
		for {
			for i++; s.less(s.get(i), pivot); i++ {
				if i > hi {
					raise(s.L, "invalid order function for sorting")
				}
			}
			for j--; s.less(pivot, s.get(j)); j-- {
				if j < lo {
					raise(s.L, "invalid order function for sorting")
				}
			}
			if j < i {
				break
			}
			s.swap(i, j)
		}
		s.swap(hi-1, i)
		if i-lo < hi-i {
			s.sort(lo, i-1)
			lo = i + 1
		} else {
			s.sort(i+1, hi)
			hi = i - 1
		}
	}
}
