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
