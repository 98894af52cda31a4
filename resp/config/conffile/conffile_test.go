package conffile

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	for line, want := range map[string][]string{
		``:                       nil,
		`  port   6379 `:         {"port", "6379"},
		`save ""`:                {"save", ""},
		`save ''`:                {"save", ""},
		`a "b c" 'd e'`:          {"a", "b c", "d e"},
		`a "\x41\n\"\\" '\' \n'`: {"a", "A\n\"\\", `' \n`},
		`a "\q\xzz"`:             {"a", "qxzz"},
		"a\tb":                   {"a", "b"},
		`a b"c"`:                 {"a", "bc"},
	} {
		words, err := Split(line)
		assert.NoError(t, err, line)
		assert.Equal(t, want, words, line)
	}
	for _, line := range []string{`a "b`, `a 'b`, `a "b"c`, `a 'b'c`, `a "b\`, `a "b\"`, `a 'b\'`, `a "`, `'`} {
		_, err := Split(line)
		assert.ErrorIs(t, err, ErrQuotes, line)
	}
}

// write writes files to a temporary directory and makes it the current one.
func write(t *testing.T, files map[string]string) {
	t.Chdir(t.TempDir())
	for name, text := range files {
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
	}
}

func TestReadReportsFileAndLine(t *testing.T) {
	write(t, map[string]string{
		"a.conf": "\ufeff# comment\n\nPort 6379\r\ninclude b.conf\ninclude none*.conf\n  save 60 1\n",
		"b.conf": "timeout 1",
		"c.conf": "port 1\nbind \"x\n",
		"d.conf": "\ninclude c.conf\n",
		"e.conf": "include d.conf x\n",
	})
	list, err := Read("a.conf")
	require.NoError(t, err)
	assert.Equal(t, []Directive{
		{"a.conf", 3, "port", []string{"6379"}}, {"b.conf", 1, "timeout", []string{"1"}},
		{"a.conf", 6, "save", []string{"60", "1"}},
	}, list)
	for file, want := range map[string]string{
		"c.conf": "c.conf:2: " + ErrQuotes.Error(),
		"d.conf": "d.conf:2: c.conf:2: " + ErrQuotes.Error(),
		"e.conf": "e.conf:1: include takes one file or pattern",
		"f.conf": "open f.conf: no such file or directory",
	} {
		_, err := Read(file)
		assert.EqualError(t, err, want)
	}
}

// Files that include each other, or are included too often, are an error, found quickly.
func TestIncludesAreLimited(t *testing.T) {
	files := map[string]string{"x0.conf": "", "a.conf": "include b.conf\n", "b.conf": "include ./a.conf\n"}
	for i := range 30 {
		files[fmt.Sprintf("x%d.conf", i+1)] = strings.Repeat(fmt.Sprintf("include x%d.conf\n", i), 2)
	}
	write(t, files)
	_, err := Read("a.conf")
	assert.EqualError(t, err, "a.conf:1: b.conf:1: ./a.conf includes itself")
	_, err = Read("x30.conf")
	assert.ErrorContains(t, err, "more than 100 files are included")
}

func TestOnlySmallRegularFilesAreRead(t *testing.T) {
	write(t, map[string]string{"large": "", "a.conf": "include pipe\n"})
	require.NoError(t, os.Truncate("large", maxFile+1))
	require.NoError(t, syscall.Mkfifo("pipe", 0o600))
	for file, want := range map[string]string{
		".":      ". must be a regular file, but is a directory",
		"pipe":   "pipe must be a regular file, but is a named pipe",
		"a.conf": "a.conf:1: pipe must be a regular file, but is a named pipe",
		"large":  "large is too large: at most 16777216 bytes are read",
	} {
		_, err := Read(file)
		assert.EqualError(t, err, want)
	}
}

func TestRewriteKeepsOtherLines(t *testing.T) {
	before := "\n# mine\nport 6379\n\nsave 1 2\n  # more\nsave 3 4\nother \"x\ntimeout  0\r\nOld-Name 1\n\n"
	after := Rewrite(before, []Setting{
		{Names: []string{"port"}, Lines: [][]string{{"7000"}}},
		{Names: []string{"save"}, Lines: [][]string{{"5", "6"}, {"7", "8"}}},
		{Names: []string{"new-name", "old-name"}, Lines: [][]string{{"2"}}},
		{Names: []string{"requirepass"}, Lines: [][]string{{"a b\"c"}}},
	})
	assert.Equal(t, "\n# mine\nport 7000\n\nsave 5 6\nsave 7 8\n  # more\nother \"x\ntimeout  0\r\nnew-name 2\n\n"+
		generated+"\nrequirepass \"a b\\\"c\"\n", after)
	assert.Equal(t, after, Rewrite(after, nil))
	again := Rewrite(after, []Setting{{Names: []string{"loglevel"}, Lines: [][]string{{"debug"}}}})
	assert.Equal(t, after+"loglevel debug\n", again)
	assert.Equal(t, "", Rewrite("", nil))
	assert.Equal(t, generated+"\nport 1\n", Rewrite("", []Setting{{Names: []string{"port"}, Lines: [][]string{{"1"}}}}))
}

func FuzzQuote(f *testing.F) {
	for _, word := range []string{"", "a", `"`, `\`, "# x", "a b", "\x00\xff\n"} {
		f.Add(word)
	}
	f.Fuzz(func(t *testing.T, word string) {
		words, err := Split("x " + Quote(word))
		require.NoError(t, err)
		require.Equal(t, []string{"x", word}, words)
		require.NotContains(t, Quote(word), "\n", "a word never breaks its line")
	})
}

// FuzzRewrite checks that a rewritten setting is read back, whatever the file held before.
func FuzzRewrite(f *testing.F) {
	f.Add("# x\nport 1\n\nsave 1 2\nsave \"\n", "7000")
	f.Fuzz(func(t *testing.T, text, value string) {
		settings := []Setting{{Names: []string{"port"}, Lines: [][]string{{value}}}}
		after := Rewrite(text, settings)
		require.Equal(t, after, Rewrite(after, settings))
		found := 0
		for line := range strings.Lines(after) {
			if words, err := splitLine(line); err == nil && len(words) > 0 && strings.ToLower(words[0]) == "port" {
				require.Equal(t, []string{value}, words[1:])
				found++
			}
		}
		require.Equal(t, 1, found)
	})
}
