package lua

import (
	"strings"

	glua "github.com/yuin/gopher-lua"
)

// Patterns of Lua 5.1. Each step of the matcher counts as an instruction: a pattern that tries many
// ways is ended like a loop.

const (
	maxCaptures  = 32
	maxRecursion = 200 // of the matcher, as in Lua
	unclosed     = -1
	position     = -2
)

type capture struct{ start, length int }

type matcher struct {
	L        *glua.LState
	w        *watch
	src, pat string
	level    int
	captures [maxCaptures]capture
	depth    int
}

func (m *matcher) fail(text string) { raise(m.L, "%s", text) }

func (m *matcher) classEnd(p int) int {
	if p >= len(m.pat) {
		m.fail("malformed pattern (ends with '%')")
	}
	c := m.pat[p]
	p++
	switch c {
	case '%':
		if p >= len(m.pat) {
			m.fail("malformed pattern (ends with '%')")
		}
		return p + 1
	case '[':
		if p < len(m.pat) && m.pat[p] == '^' {
			p++
		}
		for {
			if p >= len(m.pat) {
				m.fail("malformed pattern (missing ']')")
			}
			c := m.pat[p]
			p++
			if c == '%' && p < len(m.pat) {
				p++
			}
			if p < len(m.pat) && m.pat[p] == ']' {
				return p + 1
			}
			if p >= len(m.pat) {
				m.fail("malformed pattern (missing ']')")
			}
		}
	}
	return p
}

func inClass(c, class byte) bool {
	var yes bool
	switch class | 0x20 {
	case 'a':
		yes = 'a' <= c|0x20 && c|0x20 <= 'z'
	case 'c':
		yes = c < 32 || c == 127
	case 'd':
		yes = '0' <= c && c <= '9'
	case 'l':
		yes = 'a' <= c && c <= 'z'
	case 'p':
		yes = c > 32 && c < 127 && !inClass(c, 'w')
	case 's':
		yes = c == ' ' || c >= 9 && c <= 13
	case 'u':
		yes = 'A' <= c && c <= 'Z'
	case 'w':
		yes = 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9'
	case 'x':
		yes = '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
	case 'z':
		yes = c == 0
	default:
		return class == c
	}
	if class&0x20 == 0 {
		return !yes
	}
	return yes
}

// inSet reports whether c is in the set that begins at p and ends with the ] at end.
func (m *matcher) inSet(c byte, p, end int) bool {
	found := true
	if m.pat[p+1] == '^' {
		found = false
		p++
	}
	for p++; p < end; p++ {
		switch {
		case m.pat[p] == '%' && p+1 < len(m.pat):
			p++
			if inClass(c, m.pat[p]) {
				return found
			}
		case p+2 < end && m.pat[p+1] == '-':
			p += 2
			if m.pat[p-2] <= c && c <= m.pat[p] {
				return found
			}
		case m.pat[p] == c:
			return found
		}
	}
	return !found
}

func (m *matcher) single(s, p, end int) bool {
	if s >= len(m.src) {
		return false
	}
	switch c := m.src[s]; m.pat[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.pat[p+1])
	case '[':
		return m.inSet(c, p, end-1)
	default:
		return m.pat[p] == c
	}
}

// match returns the end of a match of the pattern from p on at s, or -1.
func (m *matcher) match(s, p int) int {
	if m.depth++; m.depth > maxRecursion*100 {
		m.fail("pattern too complex")
	}
	defer func() { m.depth-- }()
	for {
		m.w.step(1)
		if p >= len(m.pat) {
			return s
		}
		switch m.pat[p] {
		case '(':
			if p+1 < len(m.pat) && m.pat[p+1] == ')' {
				return m.startCapture(s, p+2, position)
			}
			return m.startCapture(s, p+1, unclosed)
		case ')':
			return m.endCapture(s, p+1)
		case '$':
			if p+1 == len(m.pat) {
				if s == len(m.src) {
					return s
				}
				return -1
			}
		case '%':
			if p+1 < len(m.pat) {
				switch c := m.pat[p+1]; {
				case c == 'b':
					if s = m.balance(s, p+2); s < 0 {
						return -1
					}
					p += 4
					continue
				case c == 'f':
					p += 2
					if p >= len(m.pat) || m.pat[p] != '[' {
						m.fail("missing '[' after '%f' in pattern")
					}
					end := m.classEnd(p)
					var before, here byte
					if s > 0 {
						before = m.src[s-1]
					}
					if s < len(m.src) {
						here = m.src[s]
					}
					if m.inSet(before, p, end-1) || !m.inSet(here, p, end-1) {
						return -1
					}
					p = end
					continue
				case '0' <= c && c <= '9':
					if s = m.back(s, c); s < 0 {
						return -1
					}
					p += 2
					continue
				}
			}
		}
		end := m.classEnd(p)
		var suffix byte
		if end < len(m.pat) {
			suffix = m.pat[end]
		}
		switch suffix {
		case '?':
			if m.single(s, p, end) {
				if e := m.match(s+1, end+1); e >= 0 {
					return e
				}
			}
			p = end + 1
		case '*':
			return m.longest(s, p, end)
		case '+':
			if !m.single(s, p, end) {
				return -1
			}
			return m.longest(s+1, p, end)
		case '-':
			for {
				if e := m.match(s, end+1); e >= 0 {
					return e
				}
				m.w.step(1)
				if !m.single(s, p, end) {
					return -1
				}
				s++
			}
		default:
			if !m.single(s, p, end) {
				return -1
			}
			s, p = s+1, end
		}
	}
}

func (m *matcher) longest(s, p, end int) int {
	n := 0
	for m.single(s+n, p, end) {
		n++
	}
	m.w.step(n / 8)
	for ; n >= 0; n-- {
		if e := m.match(s+n, end+1); e >= 0 {
			return e
		}
	}
	return -1
}

func (m *matcher) balance(s, p int) int {
	if p+1 >= len(m.pat) {
		m.fail("unbalanced pattern")
	}
	if s >= len(m.src) || m.src[s] != m.pat[p] {
		return -1
	}
	open, shut, depth := m.pat[p], m.pat[p+1], 1
	for i := s + 1; i < len(m.src); i++ {
		switch m.src[i] {
		case shut:
			if depth--; depth == 0 {
				m.w.step((i - s) / 8)
				return i + 1
			}
		case open:
			depth++
		}
	}
	m.w.step((len(m.src) - s) / 8)
	return -1
}

func (m *matcher) startCapture(s, p, what int) int {
	if m.level >= maxCaptures {
		m.fail("too many captures")
	}
	m.captures[m.level] = capture{s, what}
	m.level++
	e := m.match(s, p)
	if e < 0 {
		m.level--
	}
	return e
}

func (m *matcher) endCapture(s, p int) int {
	at := -1
	for i := m.level - 1; i >= 0; i-- {
		if m.captures[i].length == unclosed {
			at = i
			break
		}
	}
	if at < 0 {
		m.fail("invalid pattern capture")
	}
	m.captures[at].length = s - m.captures[at].start
	e := m.match(s, p)
	if e < 0 {
		m.captures[at].length = unclosed
	}
	return e
}

func (m *matcher) back(s int, digit byte) int {
	i := int(digit - '1')
	if i < 0 || i >= m.level || m.captures[i].length == unclosed {
		m.fail("invalid capture index")
	}
	length := max(m.captures[i].length, 0)
	text := m.src[m.captures[i].start : m.captures[i].start+length]
	m.w.step(length / 8)
	if strings.HasPrefix(m.src[s:], text) {
		return s + length
	}
	return -1
}

// captured returns a capture, or the whole match if there is none.
func (m *matcher) captured(i, start, end int) glua.LValue {
	if i >= m.level {
		if i != 0 {
			m.fail("invalid capture index")
		}
		return m.part(start, end)
	}
	c := m.captures[i]
	switch c.length {
	case unclosed:
		m.fail("unfinished capture")
	case position:
		return glua.LNumber(c.start + 1)
	}
	return m.part(c.start, c.start+c.length)
}

func (m *matcher) part(start, end int) glua.LValue {
	m.w.charge(perValue)
	return m.w.st.scratch.string(m.w.part(m.src, m.src[start:end]))
}

// pushCaptures pushes all captures, or the whole match.
func (m *matcher) pushCaptures(start, end int, whole bool) int {
	n := m.level
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
	m := matcher{L: L, w: &st.watch, src: src, pat: pat}
	first := 0
	if strings.HasPrefix(pat, "^") {
		first = 1
	}
	for s := init; ; s++ {
		m.level = 0
		if e := m.match(s, first); e >= 0 {
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
		m := matcher{L: L, w: &st.watch, src: src, pat: pat}
		for s := at; s <= len(src); s++ {
			m.level = 0
			if e := m.match(s, 0); e >= 0 {
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
	m := matcher{L: L, w: &st.watch, src: src, pat: pat}
	first := 0
	if strings.HasPrefix(pat, "^") {
		first = 1
	}
	defer st.watch.release(st.watch.reserved)
	var out []byte
	s, n := 0, 0
	for n < most {
		m.level = 0
		e := m.match(s, first)
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

// replace appends what a match is replaced by.
func (st *State) replace(m *matcher, out []byte, by glua.LValue, start, end int) []byte {
	L := m.L
	var v glua.LValue
	switch by := by.(type) {
	case glua.LString:
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
				out = st.watch.join(out, m.src[start:end])
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
		return st.watch.join(out, m.src[start:end])
	}
	text, ok := joinable(v)
	if !ok {
		raise(L, "invalid replacement value (a %s)", v.Type())
	}
	return st.watch.join(out, text)
}
