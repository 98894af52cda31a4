// Package conffile reads and rewrites configuration files in the syntax of redis.conf: one
// directive per line, its name and its arguments separated by white space and quoted as in Redis'
// inline commands. A line that begins with # is a comment.
//
// The package knows only the syntax, and the directive include. The caller knows the other
// directives.
package conffile

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rlserver/internal/smallfile"
)

// Directive is a line of a file that is not a comment.
type Directive struct {
	File string // the path as given
	Line int    // from 1
	Name string // in lower case
	Args []string
}

const (
	maxFile  = 16 << 20 // bytes of one file
	maxFiles = 100      // files read for one, including it
)

// reader reads a file and the files that it includes.
type reader struct {
	open  []string // files that are being read, outermost first, as absolute paths
	files int
	list  []Directive
}

// Read returns the directives of a file. Each line include is replaced by the directives of the
// files that it names. As in Redis, the name may be a pattern, which may match no file. Files must
// be regular and have at most 16 MB. Errors name file and line.
func Read(path string) ([]Directive, error) {
	var r reader
	err := r.read(path)
	return r.list, err
}

func (r *reader) read(path string) error {
	if r.files++; r.files > maxFiles {
		return fmt.Errorf("more than %d files are included", maxFiles)
	}
	absolute, err := filepath.Abs(path)
	switch {
	case err != nil:
		return err
	case slices.Contains(r.open, absolute):
		return fmt.Errorf("%s includes itself", path)
	}
	text, err := ReadText(path)
	if err != nil {
		return err
	}
	r.open = append(r.open, absolute)
	for i, line := range strings.Split(text, "\n") {
		if err := r.line(path, i+1, line); err != nil {
			return fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
	}
	r.open = r.open[:len(r.open)-1]
	return nil
}

func (r *reader) line(path string, number int, line string) error {
	words, err := splitLine(line)
	if err != nil || len(words) == 0 {
		return err
	}
	d := Directive{File: path, Line: number, Name: strings.ToLower(words[0]), Args: words[1:]}
	if d.Name != "include" {
		r.list = append(r.list, d)
		return nil
	}
	if len(d.Args) != 1 {
		return errors.New("include takes one file or pattern")
	}
	return r.include(d.Args[0])
}

func (r *reader) include(name string) error {
	files := []string{name}
	if strings.ContainsAny(name, "*?[") {
		matches, err := filepath.Glob(name)
		if err != nil {
			return err
		}
		files = matches
	}
	for _, file := range files {
		if err := r.read(file); err != nil {
			return err
		}
	}
	return nil
}

// ReadText returns the text of a file, which must be regular and have at most 16 MB.
func ReadText(path string) (string, error) {
	text, err := smallfile.Read(path, maxFile)
	return strings.TrimPrefix(string(text), "\ufeff"), err
}

// ErrQuotes is the error of a line that cannot be split into words.
var ErrQuotes = errors.New("the quotes are not balanced, or something follows a closing quote")

// splitLine returns the words of a line; none for a comment or an empty line.
func splitLine(line string) ([]string, error) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return nil, nil
	}
	return Split(line)
}

// Split splits a line into words as Redis does. It resolves \n \r \t \b \a \\ \" and \xHH within
// "…", and \' within '…'. A closing quote ends the word.
func Split(line string) (words []string, err error) {
	for i := 0; ; {
		for i < len(line) && isSpace(line[i]) {
			i++
		}
		if i == len(line) {
			return words, nil
		}
		word, next, err := splitWord(line, i)
		if err != nil {
			return nil, err
		}
		words, i = append(words, word), next
	}
}

// splitWord returns the word that begins at i, and the index of its end.
func splitWord(line string, i int) (word string, end int, err error) {
	var b []byte
	for quote := byte(0); i < len(line); i++ {
		switch c := line[i]; {
		case quote == 0 && isSpace(c):
			return string(b), i, nil
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			if i+1 < len(line) && !isSpace(line[i+1]) {
				return "", i, ErrQuotes
			}
			return string(b), i + 1, nil
		case quote == '"' && c == '\\' && i+1 < len(line):
			raw, used := unescape(line[i+1:])
			b = append(b, raw)
			i += used
		case quote == '\'' && c == '\\' && i+1 < len(line) && line[i+1] == '\'':
			b = append(b, '\'')
			i++
		default:
			b = append(b, c)
		}
		if i+1 >= len(line) && quote != 0 {
			return "", i, ErrQuotes
		}
	}
	return string(b), i, nil
}

// unescape returns the byte of an escape, and its length without the backslash.
func unescape(rest string) (raw byte, used int) {
	if rest[0] == 'x' && len(rest) >= 3 {
		if n, err := strconv.ParseUint(rest[1:3], 16, 8); err == nil {
			return byte(n), 3
		}
	}
	if i := strings.IndexByte("nrtba", rest[0]); i >= 0 {
		return "\n\r\t\b\a"[i], 1
	}
	return rest[0], 1
}

func isSpace(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' }

// Quote returns a word in the form that Split reads back.
func Quote(word string) string {
	if word != "" && word[0] != '#' && !strings.ContainsFunc(word, needsQuotes) {
		return word
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(word) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, `\x%02x`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func needsQuotes(r rune) bool { return r <= ' ' || r == '"' || r == '\'' || r == '\\' || r >= 0x7f }

// Setting is a directive to be written to a file.
type Setting struct {
	Names []string   // the name to write, and its aliases
	Lines [][]string // the arguments of each line
}

// generated is the comment of Redis before lines that Rewrite adds.
const generated = "# Generated by CONFIG REWRITE"

// Rewrite returns the text with the settings changed. The lines of a setting replace its first line
// in the text, and its other lines are removed; if it has none, they are added at the end. All
// other lines stay unchanged and in place.
func Rewrite(text string, settings []Setting) string {
	var out []string
	done, marked := make(map[*Setting]bool, len(settings)), false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		marked = marked || strings.TrimSpace(line) == generated
		switch s := settingOf(line, settings); {
		case s == nil:
			out = append(out, line)
		case !done[s]:
			done[s] = true
			out = append(out, s.text()...)
		}
	}
	for i := range settings {
		s := &settings[i]
		if done[s] || len(s.Lines) == 0 {
			continue
		}
		if !marked {
			out, marked = append(out, generated), true
		}
		out = append(out, s.text()...)
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "\n") + "\n"
}

func settingOf(line string, settings []Setting) *Setting {
	words, err := splitLine(line)
	if err != nil || len(words) == 0 {
		return nil
	}
	i := slices.IndexFunc(settings, func(s Setting) bool { return slices.Contains(s.Names, strings.ToLower(words[0])) })
	if i < 0 {
		return nil
	}
	return &settings[i]
}

func (s *Setting) text() (lines []string) {
	for _, args := range s.Lines {
		words := []string{s.Names[0]}
		for _, arg := range args {
			words = append(words, Quote(arg))
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}
