package lua

import (
	"strings"

	glua "github.com/yuin/gopher-lua"

	"rlserver/resp/lua/pattern"
)

// matcher is the matching of a library function.
type matcher struct {
	pattern.Matcher
	L  *glua.LState
	st *State
}

// newMatcher also returns where the pattern begins, behind a ^ that ties it to the beginning.
func newMatcher(st *State, L *glua.LState, source, pat string) (m matcher, first int) {
	if strings.HasPrefix(pat, "^") {
		first = 1
	}
	return matcher{pattern.Matcher{Host: &st.watch, Source: source, Pattern: pat}, L, st}, first
}

// Step implements pattern.Host.
func (w *watch) Step(n int) { w.step(n) }

// Fail implements pattern.Host.
func (w *watch) Fail(text string) { raise(w.st.L.G.CurrentThread, text) }

// captured returns a capture, or the whole match if there is none.
func (m *matcher) captured(i, start, end int) glua.LValue {
	if i >= len(m.Captures()) {
		if i != 0 {
			raise(m.L, "invalid capture index")
		}
		return m.part(start, end)
	}
	c := m.Captures()[i]
	switch c.Length {
	case pattern.Unclosed:
		raise(m.L, "unfinished capture")
	case pattern.Position:
		return glua.LNumber(c.Start + 1)
	}
	return m.part(c.Start, c.Start+c.Length)
}

func (m *matcher) part(start, end int) glua.LValue {
	m.st.watch.charge(perValue)
	return m.st.scratch.string(m.st.watch.part(m.Source, m.Source[start:end]))
}

func (m *matcher) pushCaptures(start, end int, whole bool) int {
	n := len(m.Captures())
	if n == 0 && whole {
		n = 1
	}
	for i := range n {
		m.L.Push(m.captured(i, start, end))
	}
	return n
}

// find is string.find and string.match.
func find(st *State, L *glua.LState, positions bool) int {
	src, pat := checkString(st, L, 1), checkString(st, L, 2)
	init := optInt(L, 3, 1)
	if init < 0 {
		init = max(len(src)+init+1, 1)
	}
	init = min(max(init-1, 0), len(src))
	if positions && (glua.LVAsBool(L.Get(4)) || !strings.ContainsAny(pat, "^$*+?.([%-")) {
		st.watch.step(len(src) / 64)
		if at := strings.Index(src[init:], pat); at >= 0 {
			st.pushInt(L, init+at+1)
			st.pushInt(L, init+at+len(pat))
			return 2
		}
		L.Push(glua.LNil)
		return 1
	}
	m, first := newMatcher(st, L, src, pat)
	for s := init; ; s++ {
		if e := m.Match(s, first); e >= 0 {
			if !positions {
				return m.pushCaptures(s, e, true)
			}
			st.pushInt(L, s+1)
			st.pushInt(L, e)
			return 2 + m.pushCaptures(0, 0, false)
		}
		if s >= len(src) || first == 1 {
			L.Push(glua.LNil)
			return 1
		}
	}
}

func stringGmatch(st *State, L *glua.LState) int {
	src, pat := checkString(st, L, 1), checkString(st, L, 2)
	at := 0
	L.Push(L.NewClosure(func(L *glua.LState) int {
		m, _ := newMatcher(st, L, src, pat)
		for s := at; s <= len(src); s++ {
			if e := m.Match(s, 0); e >= 0 {
				if at = e; e == s {
					at++
				}
				return m.pushCaptures(s, e, true)
			}
		}
		at = len(src) + 1
		return 0
	}, glua.LString(src))) // which is measured there
	return 1
}

func stringGsub(st *State, L *glua.LState) int {
	src, pat := checkString(st, L, 1), checkString(st, L, 2)
	by := L.Get(3)
	switch by.Type() {
	case glua.LTNumber:
		by = glua.LString(checkString(st, L, 3))
	case glua.LTString, glua.LTFunction, glua.LTTable:
	default:
		return argError(L, 3, "string/function/table expected")
	}
	most := optInt(L, 4, len(src)+1)
	m, first := newMatcher(st, L, src, pat)
	defer st.watch.release(st.watch.reserved)
	var out []byte
	s, n := 0, 0
	for n < most {
		e := m.Match(s, first)
		if e >= 0 {
			n++
			out = st.replace(&m, out, by, s, e)
		}
		switch {
		case e > s:
			s = e
		case s < len(src):
			out = append(st.watch.room(out, 1), src[s])
			s++
		default:
			s++
		}
		if s > len(src) || first == 1 {
			break
		}
	}
	if s < len(src) {
		out = st.watch.join(out, src[s:])
	}
	st.push(L, st.watch.text(out))
	st.pushInt(L, n)
	return 2
}

func (st *State) replace(m *matcher, out []byte, by glua.LValue, start, end int) []byte {
	L := m.L
	var v glua.LValue
	switch by := by.(type) {
	case glua.LString:
		st.watch.step(len(by) / 8)
		for i := 0; i < len(by); i++ {
			c := by[i]
			if out = st.watch.room(out, 1); c != '%' {
				out = append(out, c)
				continue
			}
			if i++; i >= len(by) {
				return append(out, 0)
			}
			switch c = by[i]; {
			case c == '0':
				out = st.watch.join(out, m.Source[start:end])
			case '1' <= c && c <= '9':
				text, _ := joinable(m.captured(int(c-'1'), start, end))
				out = st.watch.join(out, text)
			default:
				out = append(out, c)
			}
		}
		return out
	case *glua.LTable:
		v = L.GetTable(by, m.captured(0, start, end))
	default:
		L.Push(by)
		n := m.pushCaptures(start, end, true)
		L.Call(n, 1)
		v = L.Get(-1)
		L.Pop(1)
	}
	if !glua.LVAsBool(v) {
		return st.watch.join(out, m.Source[start:end])
	}
	text, ok := joinable(v)
	if !ok {
		raise(L, "invalid replacement value (a %s)", v.Type())
	}
	return st.watch.join(out, text)
}
