package wire

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

func newFraming(text string) *framing {
	return &framing{limits: config.NewConnectionLimits(), authenticated: true, bulk: -1, begin: -1, buf: []byte(text)}
}

// similar returns a command that mostly differs from others only in its second word, or in what
// only a parser of every byte sees.
func similar(r *rand.Rand) string {
	long := strings.Repeat("k", r.IntN(30)*r.IntN(5)*r.IntN(20))
	words := [][]string{
		{"GET", long}, {"GET", fmt.Sprint("key", r.IntN(1000))}, {"get", "a"}, {"GET", "a", "b"}, {"PING"},
		{"RL.TOKEN", fmt.Sprint("key", r.IntN(1e6)), "100", "100", "60"},
		{"RL.TOKEN", long, "100", "100", "60"}, {"RL.TOKEN", "k", "100", "100", "61"},
		{"RL.TOKEN", "k", "100", "100", "60", "COST"}, {"RL.TOKEN", "\r\n$3\r\n100", "100", "100", "60"},
		{"RL.TOKEN", "", "100", "100", "60"}, {"RL.COUNTER", "k", "1"}, strings.Fields("A B C D E F G H I J"),
	}[r.IntN(13)]
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, w := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(w), w)
	}
	switch r.IntN(40) {
	case 0: // not of the common form, or broken
		return strings.Replace(text, "$1", "$01", 1)
	case 1:
		return strings.Replace(text, "\r\n", "\rx", 1+r.IntN(3))
	case 2:
		i := r.IntN(len(text))
		return text[:i] + string(rune('0'+r.IntN(10))) + text[i+1:]
	}
	return text
}

// The words of commands ahead are those that next would return, and a command that repeats the one
// before has the same words but for the second.
func TestWordsAheadAreThoseOfNext(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	repeated := 0
	for range 3000 {
		var text strings.Builder
		template := similar(r)
		for range 1 + r.IntN(20) {
			if r.IntN(4) == 0 {
				template = similar(r)
			}
			text.WriteString(template)
		}
		stream := text.String()[:text.Len()-r.IntN(min(30, text.Len()))]
		one, other := newFraming(stream), newFraming(stream)
		before := one.next()
		require.Equal(t, slices.Clone(before), other.next(), "seed %d", seed)
		for offset := 0; before != nil; {
			words, size, repeats := one.ahead(offset)
			if size == 0 {
				break
			}
			same := len(words) == len(before) && len(words) > 1 &&
				slices.EqualFunc(slices.Delete(slices.Clone(words), 1, 2), slices.Delete(slices.Clone(before), 1, 2),
					func(a, b []byte) bool { return string(a) == string(b) })
			require.True(t, same || !repeats, "seed %d: %q after %q", seed, words, before)
			if repeats {
				repeated++
			}
			require.Equal(t, other.next(), words, "seed %d: %q", seed, stream)
			require.Equal(t, other.head, one.head+offset+size)
			before, offset = words, offset+size
		}
	}
	assert.Greater(t, repeated, 1000)
}

// Words that are valid stay as they are, whatever is read ahead.
func TestWordsStayWhileOthersAreReadAhead(t *testing.T) {
	one, two := "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$1\r\nb\r\n", "*3\r\n$3\r\nSET\r\n$2\r\naa\r\n$1\r\nb\r\n"
	f := newFraming(strings.Repeat(one+two, 500))
	all := [][][]byte{f.next()}
	for offset := 0; ; {
		words, size, repeats := f.ahead(offset)
		if size == 0 {
			break
		}
		require.True(t, repeats)
		all, offset = append(all, words), offset+size
	}
	require.Len(t, all, 1000)
	for i, words := range all {
		require.Equal(t, [][]byte{[]byte("SET"), []byte("aa")[:1+i%2], []byte("b")}, words)
	}
}

// A command whose words are not valid any more, as input has arrived since, is compared with none.
func TestNoCommandRepeatsOneThatIsGone(t *testing.T) {
	const call = "*2\r\n$3\r\nGET\r\n$1\r\na\r\n"
	for name, change := range map[string]func(*framing){
		"added":   func(f *framing) { f.add([]byte(strings.Repeat(call, 10_000))) },
		"read":    func(f *framing) { f.extend(copy(f.freeSpace(false), call)) },
		"taken":   func(f *framing) { f.take(f.head + len(call)) },
		"another": func(f *framing) { f.buf = append(f.buf, "*1\r\n$04\r\nPING\r\n"+call...); f.next(); f.next() },
	} {
		f := newFraming(call + call)
		require.NotNil(t, f.next())
		_, size, repeats := f.ahead(0)
		require.True(t, repeats && size == len(call))
		change(f)
		if words, size, repeats := f.ahead(0); size > 0 {
			assert.False(t, repeats, name)
			assert.Equal(t, [][]byte{[]byte("GET"), []byte("a")}, words, name)
		}
	}
	f := newFraming(call)
	require.NotNil(t, f.next())
	f.release()
	_, size, _ := f.ahead(0)
	assert.Zero(t, size)
}
