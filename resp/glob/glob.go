package glob

import (
	"bytes"

	"rlserver/engine"
)

// maxStars is the number of stars above which a pattern matches nothing in Redis. A star that ends
// the pattern is not counted, nor is one next to another.
const maxStars = 1000

// A call may take maxSteps steps to match its pattern, and stepsPerByte more for each byte of the
// names, and for stepsPerByte bytes of each name. Normal patterns take a small part of that.
const (
	maxSteps     = 1 << 24
	stepsPerByte = 64
)

// ErrTooComplex is the error of a pattern that takes too many steps to match.
const ErrTooComplex = engine.Error(
	"ERR the pattern takes too long to match: it needs fewer wildcards between stars, or shorter ones")

// Pattern is the pattern of one call. It counts the steps of all its matches, so it belongs to one
// goroutine.
type Pattern struct {
	Text []byte // not copied

	nocase bool  // the case of ASCII letters is ignored
	left   int64 // steps; negative: the results of Match are invalid
}

// New returns a pattern with all its steps left. nocase ignores the case of ASCII letters.
func New(text []byte, nocase bool) Pattern {
	return Pattern{Text: text, nocase: nocase, left: maxSteps}
}

// Err returns ErrTooComplex if the pattern took too many steps. The results of Match are then
// invalid.
func (g *Pattern) Err() error {
	if g.left < 0 {
		return ErrTooComplex
	}
	return nil
}

// Match reports whether the pattern matches all of s. After it has run out of steps, Match returns
// false and Err an error. The package comment describes the rules and the algorithm.
func (g *Pattern) Match(s []byte) bool {
	if len(s) == 0 {
		return len(g.Text) == 0
	}
	if g.left < 0 {
		return false
	}
	g.left += stepsPerByte * int64(len(s)+stepsPerByte)
	end, n, _, fits := g.segment(0, len(s))
	if !fits || !g.matchSegment(0, end, s) {
		return false
	}
	for i, stars := n, 0; end < len(g.Text); i += n {
		p := skipStars(g.Text, end)
		if p == len(g.Text) {
			return true
		}
		if stars++; stars > maxStars {
			return false
		}
		var plain bool
		if end, n, plain, fits = g.segment(p, len(s)-i); !fits {
			return false
		}
		if end == len(g.Text) {
			return g.matchSegment(p, end, s[len(s)-n:])
		}
		at := g.find(p, end, n, plain, s[i:])
		if at < 0 {
			return false
		}
		i += at
	}
	return n == len(s)
}

// segment returns where the segment at p ends (at a star or with the pattern), how many bytes it
// takes, and whether all of them are plain. fits is false if it takes more than most bytes.
func (g *Pattern) segment(p, most int) (end, n int, plain, fits bool) {
	plain = !g.nocase
	for p < len(g.Text) && g.Text[p] != '*' {
		if n == most || g.left < 0 {
			return p, n, plain, false
		}
		switch g.Text[p] {
		case '?', '[', '\\':
			plain = false
		}
		next, _ := matchOne(g.Text, p, 0, false)
		g.left -= int64(next - p)
		p = next
		n++
	}
	return p, n, plain, true
}

// find returns the index in s where the segment from p to end, which takes n bytes, first matches,
// or -1.
func (g *Pattern) find(p, end, n int, plain bool, s []byte) int {
	if plain {
		return bytes.Index(s, g.Text[p:end])
	}
	for i := 0; i+n <= len(s) && g.left >= 0; i++ {
		if g.matchSegment(p, end, s[i:]) {
			return i
		}
	}
	return -1
}

// matchSegment reports whether the segment from p to end matches the beginning of
// s, which is long enough.
func (g *Pattern) matchSegment(p, end int, s []byte) bool {
	for i := 0; p < end; i++ {
		next, ok := matchOne(g.Text, p, s[i], g.nocase)
		if g.left -= int64(next - p); !ok || g.left < 0 {
			return false
		}
		p = next
	}
	return true
}

func skipStars(pattern []byte, p int) int {
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p
}

// matchOne matches c with the element at p, which is not a star, and returns the index of the next
// element of the pattern.
func matchOne(pattern []byte, p int, c byte, nocase bool) (next int, ok bool) {
	switch b := pattern[p]; {
	case b == '?':
		return p + 1, true
	case b == '[':
		return matchClass(pattern, p+1, c, nocase)
	case b == '\\' && p+1 < len(pattern):
		p++
	}
	return p + 1, sameByte(pattern[p], c, nocase)
}

// matchClass matches c with the class whose [ is just before p.
func matchClass(pattern []byte, p int, c byte, nocase bool) (next int, ok bool) {
	negated := p < len(pattern) && pattern[p] == '^'
	if negated {
		p++
	}
	in := false
	for p < len(pattern) && pattern[p] != ']' {
		switch left := len(pattern) - p; {
		case pattern[p] == '\\' && left >= 2:
			in = in || pattern[p+1] == c
			p += 2
		case left >= 3 && pattern[p+1] == '-':
			in = in || inRange(pattern[p], pattern[p+2], c, nocase)
			p += 3
		default:
			in = in || sameByte(pattern[p], c, nocase)
			p++
		}
	}
	return min(p+1, len(pattern)), in != negated
}

func inRange(from, to, c byte, nocase bool) bool {
	low, high := min(int8(from), int8(to)), max(int8(from), int8(to))
	if !nocase {
		return low <= int8(c) && int8(c) <= high
	}
	return lowerInt(byte(low)) <= lowerInt(c) && lowerInt(c) <= lowerInt(byte(high))
}

// lowerInt is C's tolower of a char, for which \xff is EOF: -1.
func lowerInt(c byte) int {
	if c == 0xff {
		return -1
	}
	return int(lowerByte(c))
}

func sameByte(a, b byte, nocase bool) bool {
	return a == b || nocase && lowerByte(a) == lowerByte(b)
}

func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}
