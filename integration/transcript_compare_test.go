package integration

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// essence returns the part of a reply that is compared, according to a step's note.
func essence(note []string, r reply) ([]string, error) {
	if len(note) == 0 {
		return r.lines(""), nil
	}
	switch words := note[1:]; note[0] {
	case "unordered":
		if r.kind == '%' {
			return r.sorted(2).lines(""), nil
		}
		return r.sorted(1).lines(""), nil
	case "pairs":
		return r.sorted(2).lines(""), nil
	case "scan":
		if len(r.items) == 2 {
			r.items = slices.Clone(r.items)
			r.items[1] = r.items[1].sorted(1 + len(words))
		}
		return r.lines(""), nil
	case "only":
		var lines []string
		for _, path := range words {
			if node, ok := r.at(path); ok {
				lines = append(lines, path+" "+node.String())
			} else {
				lines = append(lines, path+" is missing in "+r.String())
			}
		}
		return lines, nil
	case "except":
		for _, path := range words {
			r = r.without(path)
		}
		return r.lines(""), nil
	case "shape", "pick":
		return r.shape().lines(""), nil
	case "within":
		return r.lines(""), nil
	}
	return nil, fmt.Errorf("unknown annotation %q", note)
}

// differ describes how a reply differs from the recorded one according to the note. It returns ""
// if it does not differ.
func differ(note, want []string, r reply) (string, error) {
	got, err := essence(note, r)
	if err != nil {
		return "", err
	}
	if len(note) > 0 && note[0] == "within" {
		return outside(note[1:], want, r)
	}
	if !slices.Equal(want, got) {
		return sideBySide(want, got), nil
	}
	if len(note) > 0 && note[0] == "pick" {
		return mispicked(note[1:], r), nil
	}
	return "", nil
}

// sideBySide shows the wanted and the actual lines one above the other.
func sideBySide(want, got []string) string {
	const margin = "\n          "
	return "want " + strings.Join(want, margin) + "\n     got  " + strings.Join(got, margin)
}

// outside describes an integer that is not within a margin of the recorded one.
func outside(words, want []string, r reply) (string, error) {
	if len(words) != 1 || len(want) != 1 || want[0][0] != ':' {
		return "", fmt.Errorf("within takes one number, and a recorded integer; not %q, %q", words, want)
	}
	margin, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		return "", err
	}
	recorded, err := strconv.ParseInt(want[0][1:], 10, 64)
	if err != nil {
		return "", err
	}
	n, err := strconv.ParseInt(r.text, 10, 64)
	if err != nil || r.kind != ':' || n < recorded-margin || n > recorded+margin {
		return fmt.Sprintf("want within %d of %d, got %s", margin, recorded, r), nil
	}
	return "", nil
}

// mispicked describes a reply that is not a random choice of the words.
func mispicked(words []string, r reply) string {
	group, distinct := 1, false
	for len(words) > 0 && (words[0] == "distinct" || words[0] == "pairs") {
		if words[0] == "pairs" {
			group = 2
		} else {
			distinct = true
		}
		words = words[1:]
	}
	var allowed, picked []string
	for choice := range slices.Chunk(words, group) {
		allowed = append(allowed, strings.Join(choice, " "))
	}
	for choice := range slices.Chunk(r.leaves(), group) {
		picked = append(picked, strings.Join(choice, " "))
	}
	for i, choice := range picked {
		if !slices.Contains(allowed, choice) {
			return fmt.Sprintf("%q is not among %q", choice, allowed)
		}
		if distinct && slices.Contains(picked[:i], choice) {
			return fmt.Sprintf("%q was picked twice", choice)
		}
	}
	return ""
}

// Tests differ with equal and different replies.
func TestTranscriptComparison(t *testing.T) {
	for _, c := range []struct {
		note, recorded, got string // replies in wire format, without CR
		same                bool
	}{
		{"", "$1\na\n", "$1\na\n", true},
		{"", "$1\na\n", "+a\n", false},
		{"", "$-1\n", "*-1\n", false},
		{"", "$-1\n", "$2\n-1\n", false},
		{"", "*0\n", "*-1\n", false},
		{"", "*1\n*0\n", "*1\n*0\n", true},
		{"", "+OK\n", "+OK\n", true},
		{"", "_\n", "$-1\n", false},
		{"", ",1\n", ",1.0\n", false},
		{"unordered", "*2\n:1\n:2\n", "*2\n:2\n:1\n", true},
		{"unordered", "*2\n:1\n:2\n", "*2\n:2\n:2\n", false},
		{"unordered", "*2\n:1\n:2\n", "~2\n:2\n:1\n", false},
		{"unordered", "%2\n+a\n:1\n+b\n:2\n", "%2\n+b\n:2\n+a\n:1\n", true},
		{"unordered", "%2\n+a\n:1\n+b\n:2\n", "%2\n+b\n:1\n+a\n:2\n", false},
		{"pairs", "*4\n+a\n:1\n+b\n:2\n", "*4\n+b\n:2\n+a\n:1\n", true},
		{"pairs", "*4\n+a\n:1\n+b\n:2\n", "*4\n+b\n:1\n+a\n:2\n", false},
		{"scan", "*2\n$1\n0\n*2\n+a\n+b\n", "*2\n$1\n0\n*2\n+b\n+a\n", true},
		{"scan", "*2\n$1\n0\n*2\n+a\n+b\n", "*2\n$1\n7\n*2\n+b\n+a\n", false},
		{"scan pairs", "*2\n$1\n0\n*4\n+a\n:1\n+b\n:2\n", "*2\n$1\n0\n*4\n+b\n:2\n+a\n:1\n", true},
		{"scan pairs", "*2\n$1\n0\n*4\n+a\n:1\n+b\n:2\n", "*2\n$1\n0\n*4\n+b\n:1\n+a\n:2\n", false},
		{"within 5", ":100\n", ":95\n", true},
		{"within 5", ":100\n", ":94\n", false},
		{"within 5", ":100\n", ":106\n", false},
		{"within 5", ":100\n", "$3\n100\n", false},
		{"pick a b c", "*2\n$1\na\n$1\na\n", "*2\n$1\nc\n$1\nc\n", true},
		{"pick a b c", "*2\n$1\na\n$1\na\n", "*1\n$1\nc\n", false},
		{"pick a b c", "$1\na\n", "$1\nd\n", false},
		{"pick distinct a b c", "*2\n$1\na\n$1\nb\n", "*2\n$1\nc\n$1\nc\n", false},
		{"pick pairs a 1 b 2", "*2\n$1\na\n$1\n1\n", "*2\n$1\nb\n$1\n2\n", true},
		{"pick pairs a 1 b 2", "*1\n*2\n$1\na\n,1\n", "*1\n*2\n$1\nb\n,2\n", true},
		{"pick pairs a 1 b 2", "*2\n$1\na\n$1\n1\n", "*2\n$1\nb\n$1\n1\n", false},
		{"only 0.1", "*1\n*2\n+x\n:1\n", "*1\n*3\n+y\n:1\n:2\n", true},
		{"only 0.1", "*1\n*2\n+x\n:1\n", "*1\n*2\n+x\n:2\n", false},
		{"only 0.1", "*1\n*2\n+x\n:1\n", "-ERR\n", false},
		{"except 0", "*2\n+x\n:1\n", "*2\n+y\n:1\n", true},
		{"except 0", "*2\n+x\n:1\n", "*2\n+x\n:2\n", false},
		{"except 0", "*2\n+x\n:1\n", "*3\n+x\n:1\n:1\n", false},
		{"shape", "*2\n+x\n:1\n", "*2\n+y\n:7\n", true},
		{"shape", "*2\n+x\n:1\n", "*2\n+y\n+7\n", false},
		{"shape", "$1\na\n", "$-1\n", false},
	} {
		note := strings.Fields(c.note)
		want, err := essence(note, onWire(t, c.recorded))
		require.NoError(t, err)
		difference, err := differ(note, want, onWire(t, c.got))
		require.NoError(t, err)
		assert.Equal(t, c.same, difference == "", "%s: %q and %q: %s", c.note, c.recorded, c.got, difference)
	}
	for _, wrong := range [][]string{{"nonsense"}, {"within", "x"}, {"within"}} {
		_, err := differ(wrong, []string{":1"}, onWire(t, ":1\n"))
		assert.Error(t, err, wrong)
	}
	for _, malformed := range []string{"$3\nab\n", "$03\nabc\n", "*x\n", "OK\n", "+OK", "*1\n"} {
		_, err := readReply(bufio.NewReader(strings.NewReader(strings.ReplaceAll(malformed, "\n", "\r\n"))))
		assert.Error(t, err, malformed)
	}
}

// onWire reads a reply in wire format, without CR.
func onWire(t *testing.T, text string) reply {
	r, err := readReply(bufio.NewReader(strings.NewReader(strings.ReplaceAll(text, "\n", "\r\n"))))
	require.NoError(t, err, text)
	return r
}
