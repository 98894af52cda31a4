// Package pattern matches the patterns of Lua 5.1. Each step of the matcher counts as an
// instruction: a pattern that tries many ways is ended like a loop.
package pattern

import "strings"

const (
	maxCaptures  = 32
	maxRecursion = 200 // of the matcher, as in Lua
)

// What Capture.Length is instead of a length.
const (
	Unclosed = -1
	Position = -2 // () captures where it is
)

// Host counts the work, and ends it by a panic.
type Host interface {
	// Step counts so many instructions.
	Step(n int)
	// Fail raises the error for a pattern that is malformed or too complex. It does not return.
	Fail(text string)
}

// Capture is where a capture begins, and its length in bytes, Unclosed or Position.
type Capture struct{ Start, Length int }

// Matcher matches a string with a pattern. Its zero value needs Host, Source and Pattern. It is not
// safe for concurrent use.
type Matcher struct {
	Host            Host
	Source, Pattern string

	level    int
	captures [maxCaptures]Capture
	depth    int
	steps    int // that Host does not know yet
}

// Match returns the end of a match that begins at s, of the pattern from its index p on, or -1.
func (m *Matcher) Match(s, p int) int {
	m.level = 0
	return m.match(s, p)
}

// Captures returns the captures of the match. They are valid until the next one.
func (m *Matcher) Captures() []Capture { return m.captures[:m.level] }

// maxUntold is how many steps are made before Host knows.
const maxUntold = 64

func (m *Matcher) step(n int) {
	if m.steps += n; m.steps >= maxUntold {
		n, m.steps = m.steps, 0
		m.Host.Step(n)
	}
}

func (m *Matcher) classEnd(p int) int {
	if p >= len(m.Pattern) {
		m.Host.Fail("malformed pattern (ends with '%')")
	}
	c := m.Pattern[p]
	p++
	switch c {
	case '%':
		if p >= len(m.Pattern) {
			m.Host.Fail("malformed pattern (ends with '%')")
		}
		return p + 1
	case '[':
		begin := p - 1
		if p < len(m.Pattern) && m.Pattern[p] == '^' {
			p++
		}
		for {
			if p >= len(m.Pattern) {
				m.Host.Fail("malformed pattern (missing ']')")
			}
			c := m.Pattern[p]
			p++
			if c == '%' && p < len(m.Pattern) {
				p++
			}
			if p < len(m.Pattern) && m.Pattern[p] == ']' {
				m.step((p + 1 - begin) / 16)
				return p + 1
			}
			if p >= len(m.Pattern) {
				m.Host.Fail("malformed pattern (missing ']')")
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
func (m *Matcher) inSet(c byte, p, end int) bool {
	m.step((end - p) / 16)
	found := true
	if m.Pattern[p+1] == '^' {
		found = false
		p++
	}
	for p++; p < end; p++ {
		switch {
		case m.Pattern[p] == '%' && p+1 < len(m.Pattern):
			p++
			if inClass(c, m.Pattern[p]) {
				return found
			}
		case p+2 < end && m.Pattern[p+1] == '-':
			p += 2
			if m.Pattern[p-2] <= c && c <= m.Pattern[p] {
				return found
			}
		case m.Pattern[p] == c:
			return found
		}
	}
	return !found
}

func (m *Matcher) single(s, p, end int) bool {
	if s >= len(m.Source) {
		return false
	}
	switch c := m.Source[s]; m.Pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, m.Pattern[p+1])
	case '[':
		return m.inSet(c, p, end-1)
	default:
		return m.Pattern[p] == c
	}
}

// match returns the end of a match of the pattern from p on at s, or -1.
func (m *Matcher) match(s, p int) int {
	if m.depth++; m.depth > maxRecursion*100 {
		m.Host.Fail("pattern too complex")
	}
	defer func() { m.depth-- }()
	for {
		m.step(1)
		if p >= len(m.Pattern) {
			return s
		}
		switch m.Pattern[p] {
		case '(':
			if p+1 < len(m.Pattern) && m.Pattern[p+1] == ')' {
				return m.startCapture(s, p+2, Position)
			}
			return m.startCapture(s, p+1, Unclosed)
		case ')':
			return m.endCapture(s, p+1)
		case '$':
			if p+1 == len(m.Pattern) {
				if s == len(m.Source) {
					return s
				}
				return -1
			}
		case '%':
			if p+1 < len(m.Pattern) {
				switch c := m.Pattern[p+1]; {
				case c == 'b':
					if s = m.balance(s, p+2); s < 0 {
						return -1
					}
					p += 4
					continue
				case c == 'f':
					p += 2
					if p >= len(m.Pattern) || m.Pattern[p] != '[' {
						m.Host.Fail("missing '[' after '%f' in pattern")
					}
					end := m.classEnd(p)
					var before, here byte
					if s > 0 {
						before = m.Source[s-1]
					}
					if s < len(m.Source) {
						here = m.Source[s]
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
		if end < len(m.Pattern) {
			suffix = m.Pattern[end]
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
				m.step(1)
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

func (m *Matcher) longest(s, p, end int) int {
	n := 0
	for m.single(s+n, p, end) {
		n++
	}
	m.step(n / 8)
	for ; n >= 0; n-- {
		if e := m.match(s+n, end+1); e >= 0 {
			return e
		}
	}
	return -1
}

func (m *Matcher) balance(s, p int) int {
	if p+1 >= len(m.Pattern) {
		m.Host.Fail("unbalanced pattern")
	}
	if s >= len(m.Source) || m.Source[s] != m.Pattern[p] {
		return -1
	}
	open, shut, depth := m.Pattern[p], m.Pattern[p+1], 1
	for i := s + 1; i < len(m.Source); i++ {
		switch m.Source[i] {
		case shut:
			if depth--; depth == 0 {
				m.step((i - s) / 8)
				return i + 1
			}
		case open:
			depth++
		}
	}
	m.step((len(m.Source) - s) / 8)
	return -1
}

func (m *Matcher) startCapture(s, p, what int) int {
	if m.level >= maxCaptures {
		m.Host.Fail("too many captures")
	}
	m.captures[m.level] = Capture{s, what}
	m.level++
	e := m.match(s, p)
	if e < 0 {
		m.level--
	}
	return e
}

func (m *Matcher) endCapture(s, p int) int {
	at := -1
	for i := m.level - 1; i >= 0; i-- {
		if m.captures[i].Length == Unclosed {
			at = i
			break
		}
	}
	if at < 0 {
		m.Host.Fail("invalid pattern capture")
	}
	m.captures[at].Length = s - m.captures[at].Start
	e := m.match(s, p)
	if e < 0 {
		m.captures[at].Length = Unclosed
	}
	return e
}

func (m *Matcher) back(s int, digit byte) int {
	i := int(digit - '1')
	if i < 0 || i >= m.level || m.captures[i].Length == Unclosed {
		m.Host.Fail("invalid capture index")
	}
	length := max(m.captures[i].Length, 0)
	text := m.Source[m.captures[i].Start : m.captures[i].Start+length]
	m.step(length / 8)
	if strings.HasPrefix(m.Source[s:], text) {
		return s + length
	}
	return -1
}
