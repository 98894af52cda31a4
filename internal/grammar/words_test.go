package grammar

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func splitLine(line string) (words []string, ok bool) {
	split, ok := Split(nil, []byte(line))
	for _, w := range split {
		words = append(words, string(w))
	}
	return words, ok
}

// The replies of Redis to such lines are recorded in package wire; this test checks each word.
func TestSplit(t *testing.T) {
	for _, c := range []struct {
		line  string
		words []string
	}{
		{"", nil},
		{" \t\v\f\r ", nil},
		{"PING", []string{"PING"}},
		{"  SET  k\tv  ", []string{"SET", "k", "v"}},
		{"a\rb", []string{"a", "b"}},
		{"a\vb\f c", []string{"a\vb\f", "c"}},
		{`"" ''`, []string{"", ""}},
		{`a"b c"`, []string{"ab c"}},
		{`a'b c' d`, []string{"ab c", "d"}},
		{`"a"` + "\v" + `'b'` + "\fc", []string{"a", "b", "c"}},
		{`"\n\r\t\b\a\\\"\'\q"`, []string{"\n\r\t\b\a\\\"'q"}},
		{`"\x41\xfF\x00"`, []string{"A\xff\x00"}},
		{`"\x4" "\x" "\xg1" "\x4g"`, []string{"x4", "x", "xg1", "x4g"}},
		{`'\'\n\\ '`, []string{`'\n\\ `}},
		{`\n \"a"`, []string{`\n`, `\a`}},
		{`caf` + "\xc3\xa9", []string{"café"}},
	} {
		words, ok := splitLine(c.line)
		require.True(t, ok, "%q", c.line)
		require.Equal(t, c.words, words, "%q", c.line)
	}
	for _, line := range []string{`"`, `'`, `"a`, `'a`, `a"`, `"a"b`, `'a'b`, `"a""b"`, `"a"'b'`,
		`'a''b'`, `"a\"`, `"a\`, `'a\'`, `'a\\'`, `'a\`, `ok "a`} {
		_, ok := splitLine(line)
		require.False(t, ok, "%q", line)
	}
}

// Words of any bytes can be written as an inline command.
func TestSplitReadsQuotedWords(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 2000 {
		words := make([]string, 1+rnd.IntN(5))
		var line strings.Builder
		for i := range words {
			word := make([]byte, rnd.IntN(300))
			for j := range word {
				word[j] = byte(rnd.Uint32())
			}
			words[i] = string(word)
			line.WriteString(" " + quoteInline(rnd, word))
		}
		got, ok := splitLine(line.String())
		require.True(t, ok, "seed %d", seed)
		require.Equal(t, words, got, "seed %d", seed)
	}
}

// quoteInline quotes a word in one of the possible ways, at random.
func quoteInline(rnd *rand.Rand, word []byte) string {
	if rnd.IntN(2) == 0 && !strings.ContainsAny(string(word), "\\\x00\n") {
		return "'" + strings.ReplaceAll(string(word), "'", `\'`) + "'"
	}
	quoted := `"`
	for _, c := range word {
		at := strings.IndexByte("\n\r\t\b\a\\\"", c)
		switch {
		case at >= 0:
			quoted += `\` + `nrtba\"`[at:at+1]
		case c < ' ' || c > '~' || rnd.IntN(10) == 0:
			quoted += fmt.Sprintf(`\x%02x`, c)
		default:
			quoted += string(c)
		}
	}
	return quoted + `"`
}
