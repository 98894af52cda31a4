package integration

import (
	"go/scanner"
	"go/token"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

// The longest lines of Go, in columns. A tab counts as four.
const (
	commentColumns = 100
	codeColumns    = 120
)

// TestLineLengths fails for Go lines that are too long, in all packages.
func TestLineLengths(t *testing.T) {
	t.Parallel()
	files := 0
	eachGoFile(t, func(path string, source []byte) {
		files++
		for _, line := range longLines(source) {
			assert.Fail(t, "a line is too long: comments end at column 100, code at 120", "%s:%d", path, line)
		}
	})
	assert.Greater(t, files, 100)
}

// longLines returns the numbers of the lines of a Go file that are too long.
func longLines(source []byte) (long []int) {
	comments, unbroken := classify(source)
	number := 0
	for line := range strings.Lines(string(source)) {
		number++
		limit := codeColumns
		if comments[number] {
			limit = commentColumns
		}
		if columns(strings.TrimRight(line, "\n")) > limit && !unbroken[number] {
			long = append(long, number)
		}
	}
	return long
}

func columns(line string) int {
	return utf8.RuneCountInString(line) + 3*strings.Count(line, "\t")
}

// classify returns the lines that end in a comment, and those that cannot be broken:
//   - a directive such as go:embed, and a comment of a single word, such as an address
//   - the lines of a raw string, and a struct tag
//   - a string without spaces that is alone on its line
func classify(source []byte) (comments, unbroken map[int]bool) {
	comments, unbroken = make(map[int]bool), make(map[int]bool)
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	words := make(map[int]int)     // tokens other than punctuation, by line
	spaceless := make(map[int]int) // strings without spaces among them, by line
	for {
		position, kind, text := s.Scan()
		if kind == token.EOF {
			break
		}
		first := file.Line(position)
		last := first + strings.Count(text, "\n")
		switch {
		case kind == token.COMMENT:
			for line := first; line <= last; line++ {
				comments[line] = true
			}
			unbroken[first] = strings.HasPrefix(text, "//go:") || len(strings.Fields(strings.TrimLeft(text, "/"))) == 1
		case kind == token.STRING && text[0] == '`' && (last > first || strings.Contains(text, `:"`)):
			for line := first; line <= last; line++ {
				unbroken[line] = true
			}
		case kind == token.STRING && !strings.Contains(text, " "):
			spaceless[first]++
			words[first]++
		case kind.IsLiteral() || kind.IsKeyword():
			words[first]++
		}
	}
	for line, n := range spaceless {
		unbroken[line] = unbroken[line] || n == 1 && words[line] == 1
	}
	return comments, unbroken
}

// Tests the check itself.
func TestLongLinesAreFound(t *testing.T) {
	t.Parallel()
	word, text := strings.Repeat("x", 130), strings.Repeat("words ", 20)
	for name, test := range map[string]struct {
		line string
		long bool
	}{
		"comment of 100 columns":      {"\t// " + strings.Repeat("a b ", 23) + "a", false},
		"comment of 102 columns":      {"\t// " + strings.Repeat("a b ", 23) + "abc", true},
		"comment after code":          {"var a = 1 // " + text[:90], true},
		"code of 120 columns":         {"var a = \"" + strings.Repeat("a b ", 27) + "ab\"", false},
		"code of 121 columns":         {"var a = \"" + strings.Repeat("a b ", 27) + "abc\"", true},
		"address in a comment":        {"// https://" + word, false},
		"directive":                   {"//go:embed " + text, false},
		"string without spaces":       {"var a = []string{\n\t\"" + word + "\",\n}", false},
		"string after other code":     {"var a, b = 1, \"" + word + "\"", true},
		"line of a raw string":        {"var a = `\n" + text + text + "\n`", false},
		"raw string on one line":      {"var a = `" + text + "`", true},
		"struct tag":                  {"type a struct {\n\tb int `help:\"" + text + "\"`\n}", false},
		"characters of several bytes": {"// " + strings.Repeat("ä ", 48), false},
	} {
		assert.Equal(t, test.long, len(longLines([]byte("package a\n\n"+test.line+"\n"))) > 0, name)
	}
}
