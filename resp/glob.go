package resp

// maxStars is how many stars Redis follows before it takes a pattern for an
// attack, and matches nothing with it. A star that ends the pattern is not
// counted, nor is one next to another.
const maxStars = 1000

// matchGlob reports whether a pattern of KEYS, SCAN, CONFIG GET and the like
// matches all of s. nocase ignores the case of ASCII letters.
//
//   - any bytes, or none
//     ?        any one byte
//     [a-c-]   one byte that is listed or in a range; ^ in front turns it around
//     \x       x itself
//
// This is written out, not taken from a library, because clients may rely on
// what Redis makes of odd patterns, and no two libraries agree on that:
//
//   - An empty s is matched by the empty pattern only, not even by a star. (KEYS
//     and SCAN do not come here with a lone star.)
//   - A class without its ] ends with the pattern. [] matches nothing and [^]
//     anything.
//   - A range may be written backward. Bytes are ordered as signed, so that
//     [a-\xff] holds NUL, but not b. With nocase the ends are put in that
//     order first and into lower case second, by a function of C's that makes
//     all bytes unsigned except \xff: [a-\xfe] then holds nothing.
//   - In [a-], the ] is the end of the range, and the class has no ].
//   - An escaped byte in a class keeps its case, even with nocase.
//   - A backslash that ends the pattern, or a class without ], is itself.
//
// Only the last star met is ever reconsidered: a match that let an earlier
// one take more would leave less for the rest, which did not fit what it had.
// So the time is at most the product of the lengths.
func matchGlob(pattern, s []byte, nocase bool) bool {
	if len(s) == 0 {
		return len(pattern) == 0
	}
	p, i := 0, 0
	stars, afterStar, tried := 0, -1, 0
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			p = skipStars(pattern, p)
			if p == len(pattern) {
				return true
			}
			if stars++; stars > maxStars {
				return false
			}
			afterStar, tried = p, i
			continue
		}
		if p < len(pattern) {
			if next, ok := matchOne(pattern, p, s[i], nocase); ok {
				p = next
				i++
				continue
			}
		}
		if afterStar < 0 {
			return false
		}
		tried++
		p, i = afterStar, tried
	}
	return skipStars(pattern, p) == len(pattern)
}

func skipStars(pattern []byte, p int) int {
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p
}

// matchOne matches c with what stands at p, which is not a star, and returns
// where the pattern goes on.
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

// lowerInt is what C's tolower makes of a char: \xff is EOF to it, which is -1.
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
