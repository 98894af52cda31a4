package glob

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type globCase struct {
	pattern, s string
	want       bool
}

// recordedGlobs are the results of KEYS <pattern> in Redis 7.0.15, with s as the only key.
var recordedGlobs = []globCase{
	{"", "", true},
	{"", "a", false},
	{"a", "", false},
	{"*", "", true},
	{"**", "", false},
	{"?", "", false},
	{"a", "a", true},
	{"a", "A", false},
	{"a", "b", false},
	{"abc", "abc", true},
	{"abc", "abcd", false},
	{"abcd", "abc", false},
	{"?", "a", true},
	{"??", "ab", true},
	{"??", "a", false},
	{"?", "ab", false},
	{"**", "a", true},
	{"a*", "a", true},
	{"a*", "abc", true},
	{"a**", "a", true},
	{"*a", "a", true},
	{"*a", "ba", true},
	{"*a", "ab", false},
	{"*a*", "bab", true},
	{"a*c", "abc", true},
	{"a*c", "ac", true},
	{"a*c", "acb", false},
	{"a*b*c", "aXbXc", true},
	{"a*b*c", "acb", false},
	{"*ab", "aab", true},
	{"*aab*b", "aaabab", true},
	{"*?", "a", true},
	{"?*", "a", true},
	{"*??", "a", false},
	{"a*?", "a", false},
	{"*[^a]", "aab", true},
	{"*b*d", "abcbd", true},
	{"*.*.*.x", "a.b.c.d.x", true},
	{"[a]", "a", true},
	{"[a]", "b", false},
	{"[abc]", "c", true},
	{"[abc]x", "cx", true},
	{"[a-c]", "b", true},
	{"[a-c]", "d", false},
	{"[c-a]", "b", true},
	{"[c-a]", "d", false},
	{"[^a]", "a", false},
	{"[^a]", "b", true},
	{"[^a-c]", "b", false},
	{"[^a-c]", "d", true},
	{"[^]", "a", true},
	{"[^]", "]", true},
	{"[^]a", "ba", true},
	{"[]", "a", false},
	{"[]", "]", false},
	{"[]a]", "a", false},
	{"[]a]", "]", false},
	{"[]a]", "a]", false},
	{"[", "[", false},
	{"[", "a", false},
	{"[^", "^", true},
	{"[^", "a", true},
	{"[a", "a", true},
	{"[a", "b", false},
	{"[ab", "b", true},
	{"[^a", "a", false},
	{"[^a", "b", true},
	{"[a-", "a", true},
	{"[a-", "-", true},
	{"[a-", "b", false},
	{"[a-z", "q", true},
	{"[a-]", "a", true},
	{"[a-]", "-", false},
	{"[a-]", "_", true},
	{"[a-]", "b", false},
	{"[-a]", "-", true},
	{"[-a]", "a", true},
	{"[a^]", "^", true},
	{"[^^]", "^", false},
	{"[^^]", "a", true},
	{"[!a]", "!", true},
	{"[!a]", "b", false},
	{"[\\]]", "]", true},
	{"[\\]]", "\\", false},
	{"[\\", "\\", true},
	{"[\\", "a", false},
	{"[a\\", "\\", true},
	{"[\\]", "]", true},
	{"[\\]a", "a", true},
	{"[\\^]", "^", true},
	{"[\\^]", "a", false},
	{"[^\\]]", "]", false},
	{"[^\\]]", "a", true},
	{"[\\a-c]", "a", true},
	{"[\\a-c]", "b", false},
	{"[\\a-c]", "-", true},
	{"[\\a-c]", "c", true},
	{"[a-\\]]", "b]", false},
	{"[a-\\]", "]", true},
	{"[a-\\]", "_", true},
	{"[a-\\]]", "_]", true},
	{"[*]", "*", true},
	{"[*]", "a", false},
	{"[?]", "a", false},
	{"[a-c-e]", "d", false},
	{"[a-c-e]", "-", true},
	{"[a-c-e]", "e", true},
	{"[--a]", "0", true},
	{"[+--]", ",", true},
	{"[a-a]", "a", true},
	{"[a--]", "a", true},
	{"[a--]", "A", true},
	{"\\a", "a", true},
	{"\\*", "*", true},
	{"\\*", "a", false},
	{"\\?", "?", true},
	{"\\?", "a", false},
	{"\\[a]", "[a]", true},
	{"\\[a]", "a", false},
	{"\\\\", "\\", true},
	{"\\", "\\", true},
	{"a\\", "a\\", true},
	{"a\\", "a", false},
	{"*\\", "b\\", true},
	{"*\\*", "b*", true},
	{"*\\*", "b", false},
	{"a\\*", "a", false},
	{"\\\\*", "\\x", true},
	{"h\\[llo", "h[llo", true},
	{"[a]*", "a", true},
	{"[a]*", "ab", true},
	{"[a]?", "ab", true},
	{"*[a-c]", "xxb", true},
	{"*[a-c]*", "xbx", true},
	{"x[a]", "x", false},
	{"\x00", "\x00", true},
	{"a\x00b", "a\x00b", true},
	{"a?b", "a\x00b", true},
	{"[\x00]", "\x00", true},
	{"[\x00-a]", "A", true},
	{"a\x00", "a", false},
	{"\n*", "\nx", true},
	{"\xff", "\xff", true},
	{"[\x80-\xff]", "\x90", true},
	{"[\x80-\xff]", "a", false},
	{"[a-\xff]", "b", false},
	{"[a-\xff]", "a", true},
	{"[a-\xff]", "0", true},
	{"[a-\xff]", "\xff", true},
	{"[a-\xff]", "\x90", false},
	{"[\xff-a]", "\x00", true},
	{"[^\xff]", "a", true},

	{strings.Repeat("a*", 1000), strings.Repeat("a", 1000), true},
	{strings.Repeat("a*", 1000) + "b", strings.Repeat("a", 1000) + "b", true},
	{strings.Repeat("a*", 1001) + "b", strings.Repeat("a", 1001) + "b", false},
	{strings.Repeat("a*", 1001), strings.Repeat("a", 1001), true},
	{strings.Repeat("a*", 1001), strings.Repeat("a", 1002), true},
	{strings.Repeat("a*", 1002), strings.Repeat("a", 1002), false},
	{strings.Repeat("a*", 16) + "b", strings.Repeat("a", 100), false},
}

// recordedNocaseGlobs state whether COMMAND LIST FILTERBY PATTERN <pattern> of Redis 7.0.15 lists
// "get".
var recordedNocaseGlobs = []globCase{
	{"get", "get", true},
	{"GET", "get", true},
	{"G?T", "get", true},
	{"G*", "get", true},
	{"[G]et", "get", true},
	{"[^G]et", "get", false},
	{"[A-G]et", "get", true},
	{"[a-G]et", "get", false},
	{"[H-a]et", "get", false},
	{"[Z-a]et", "get", false},
	{"[G-Z]et", "get", true},
	{"[\\G]et", "get", false},
	{"[\\g]et", "get", true},
	{"\\GET", "get", true},
	{"[^\\G]et", "get", true},
	{"[^\\g]et", "get", false},
	{"[@-G]et", "get", true},
	{"[G-@]et", "get", true},
	{"[^h-Z]et", "get", true},
	{"GE[t", "get", true},
	{"GE[T-A", "get", true},
	{"*T", "get", true},
	{"*[A-F]T", "get", true},
	{"*[E]T", "get", true},
	{"?[e]?", "get", true},
	{"[`-g]et", "get", true},
	{"[G-`]et", "get", false},
	{"ge[^]", "get", true},
	{"GET\\", "get", false},
	{"[g-\x80]et", "get", false},
	{"[g-\xff]et", "get", true},
	{"[g-\xfe]et", "get", false},
	{"[\x80-g]et", "get", false},
	{"[a-\xff]et", "get", false},
	{"[z-\xff]et", "get", true},
}

// globMatches reports whether s matches a pattern, with the whole budget of steps.
func globMatches(pattern, s []byte, nocase bool) bool {
	g := New(pattern, nocase)
	return g.Match(s)
}

func TestMatchGlob(t *testing.T) {
	for _, c := range recordedGlobs {
		if c.pattern == "*" && c.s == "" {
			continue // KEYS answers this one without matching
		}
		assert.Equal(t, c.want, globMatches([]byte(c.pattern), []byte(c.s), false), "%q of %q", c.pattern, c.s)
	}
	for _, c := range recordedNocaseGlobs {
		assert.Equal(t, c.want, globMatches([]byte(c.pattern), []byte(c.s), true), "%q of %q", c.pattern, c.s)
	}
}

// naiveGlob is glob.match by plain recursion: each star tries every length. It has no maxStars.
func naiveGlob(pattern, s []byte, nocase bool) bool {
	switch {
	case len(pattern) == 0:
		return len(s) == 0
	case pattern[0] == '*':
		for i := range len(s) + 1 {
			if naiveGlob(pattern[1:], s[i:], nocase) {
				return true
			}
		}
		return false
	case len(s) == 0:
		return false
	case pattern[0] == '?':
		return naiveGlob(pattern[1:], s[1:], nocase)
	case pattern[0] == '[':
		members, rest := naiveClass(pattern[1:], nocase)
		return members[s[0]] && naiveGlob(rest, s[1:], nocase)
	case pattern[0] == '\\' && len(pattern) > 1:
		pattern = pattern[1:]
	}
	return naiveEqual(pattern[:1], s[:1], nocase) && naiveGlob(pattern[1:], s[1:], nocase)
}

// naiveClass returns the bytes in a class, and the rest of the pattern. It walks through every
// range.
func naiveClass(class []byte, nocase bool) (members [256]bool, rest []byte) {
	negate := strings.HasPrefix(string(class), "^")
	if negate {
		class = class[1:]
	}
	for len(class) > 0 && class[0] != ']' {
		switch {
		case class[0] == '\\' && len(class) > 1:
			members[class[1]] = true
			class = class[2:]
		case len(class) > 2 && class[1] == '-':
			naiveRange(&members, int(int8(class[0])), int(int8(class[2])), nocase)
			class = class[3:]
		default:
			for c := range members {
				members[c] = members[c] || naiveEqual(class[:1], []byte{byte(c)}, nocase)
			}
			class = class[1:]
		}
	}
	if negate {
		for c := range members {
			members[c] = !members[c]
		}
	}
	return members, class[min(1, len(class)):]
}

func naiveRange(members *[256]bool, from, to int, nocase bool) {
	if from > to {
		from, to = to, from
	}
	for c := -128; c < 128; c++ {
		low, mid, high := from, c, to
		if nocase {
			low, mid, high = naiveLower(from), naiveLower(c), naiveLower(to)
		}
		if low <= mid && mid <= high {
			members[byte(c)] = true
		}
	}
}

// naiveLower is tolower of glibc.
func naiveLower(c int) int {
	switch {
	case c >= 'A' && c <= 'Z':
		return c + 32
	case c < -1:
		return c + 256
	}
	return c
}

func naiveEqual(a, b []byte, nocase bool) bool {
	return string(a) == string(b) || nocase && a[0] < 128 && b[0] < 128 && strings.EqualFold(string(a), string(b))
}

// checkGlob compares glob.match with the naive reference.
func checkGlob(t *testing.T, pattern, s []byte, nocase bool) {
	want := naiveGlob(pattern, s, nocase)
	if len(s) == 0 {
		want = len(pattern) == 0
	}
	require.Equal(t, want, globMatches(pattern, s, nocase), "%q of %q, nocase %v", pattern, s, nocase)
}

func TestMatchGlobAgainstRecursion(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	const alphabet = `aAbzZ*?[]^-\` + "\x00\x80\xff"
	word := func(n int) []byte {
		w := make([]byte, rnd.IntN(n))
		for i := range w {
			w[i] = alphabet[rnd.IntN(len(alphabet))]
		}
		return w
	}
	for range 50_000 {
		checkGlob(t, word(9), word(6), rnd.IntN(2) == 0)
	}
}

func FuzzMatchGlob(f *testing.F) {
	for _, c := range recordedGlobs {
		f.Add([]byte(c.pattern), []byte(c.s), false)
	}
	for _, c := range recordedNocaseGlobs {
		f.Add([]byte(c.pattern), []byte(c.s), true)
	}
	f.Fuzz(func(t *testing.T, pattern, s []byte, nocase bool) {
		if len(pattern) > 24 || len(s) > 24 {
			globMatches(pattern, s, nocase) // too long for the recursion; it must only not panic
			return
		}
		checkGlob(t, pattern, s, nocase)
	})
}

func TestMatchGlobDoesNotAllocate(t *testing.T) {
	pattern, key := []byte("user:[0-9]*:*"), []byte("user:12345:requests")
	assert.Zero(t, testing.AllocsPerRun(100, func() { globMatches(pattern, key, false) }))
}

func BenchmarkMatchGlob(b *testing.B) {
	key := []byte("user:12345:requests")
	for _, pattern := range []string{"user:*", "user:[0-9]*:*", "*requests", "*a*b*c*d*"} {
		b.Run(pattern, func(b *testing.B) {
			p := []byte(pattern)
			b.ReportAllocs()
			for b.Loop() {
				globMatches(p, key, false)
			}
		})
	}
}

// Segments of plain bytes are found in linear time, however repetitive they are: hardly any of the
// steps of a call are used.
func TestGlobIsLinear(t *testing.T) {
	a := bytes.Repeat([]byte("a"), 1<<20)
	for _, pattern := range []string{
		"a*" + strings.Repeat("a", 50_000) + "b",
		"*" + strings.Repeat("a", 50_000) + "b*",
		"*" + strings.Repeat("a", 1000) + "*" + strings.Repeat("a", 50_000) + "b*",
		strings.Repeat("*a", 900) + "b",
	} {
		g := New([]byte(pattern), false)
		assert.False(t, g.Match(a))
		assert.NoError(t, g.Err())
		assert.Greater(t, g.left, int64(maxSteps))
	}
}

// Matching stops if it takes the product of the lengths of pattern and string.
func TestGlobStepsAreLimited(t *testing.T) {
	a := bytes.Repeat([]byte("a"), 1<<17)
	for _, pattern := range []string{
		"*" + strings.Repeat("?", 50_000) + "b*",
		"*" + strings.Repeat("[a-z]", 10_000) + "b*",
		"*[" + strings.Repeat("x", 50_000) + "]*",
	} {
		for _, nocase := range []bool{false, true} {
			g := New([]byte(pattern), nocase)
			g.Match(a)
			assert.ErrorIs(t, g.Err(), ErrTooComplex)
		}
	}
}
