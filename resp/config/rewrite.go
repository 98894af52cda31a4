package config

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"rlserver/internal/smallfile"
	"rlserver/resp/config/conffile"
)

// ErrNoFile is returned by Rewrite if the server has no configuration file.
var ErrNoFile = errors.New("there is no configuration file")

// errPasswordFile is returned by Rewrite instead of a file with two passwords.
var errPasswordFile = errors.New("requirepass was changed, but requirepass-file names the file of the password: " +
	"write it there")

// Keep records the current values as those of the next start, so that Rewrite only writes later
// changes.
func (s *Settings) Keep() {
	s.kept = make(map[string]string, len(Parameters))
	for i := range Parameters {
		s.kept[Parameters[i].Name] = Parameters[i].Get(s)
	}
}

// Rewrite writes the parameters that have changed since Keep to the configuration file. It also
// writes those that it has written before, as the file may have been edited or replaced since. All
// else in the file stays unchanged: comments, order and the form of values. Values from flags and
// the environment are not written.
func (s *Settings) Rewrite() error {
	if s.File == "" {
		return ErrNoFile
	}
	s.rewriting.Lock()
	defer s.rewriting.Unlock()
	var changed []conffile.Setting
	written := make(map[string]bool)
	for i := range Parameters {
		p := &Parameters[i]
		value := p.Get(s)
		if value == s.kept[p.Name] && !s.written[p.Name] {
			continue
		}
		written[p.Name] = true
		if p.Name == "requirepass" && s.Start.PasswordFile != "" {
			return errPasswordFile
		}
		changed = append(changed, p.directive(value))
	}
	text, err := conffile.ReadText(s.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := smallfile.Write(s.File, conffile.Rewrite(text, changed)); err != nil {
		return err
	}
	s.written = written
	return nil
}

// directive returns the lines of a configuration file that set a value.
func (p *Parameter) directive(value string) conffile.Setting {
	s := conffile.Setting{Names: []string{p.Name}}
	if p.Alias != "" {
		s.Names = append(s.Names, p.Alias)
	}
	words := strings.Fields(value)
	switch {
	case p.Words == OneWord || len(words) == 0:
		s.Lines = [][]string{{value}}
	case p.Words == ManyLines:
		for line := range strings.SplitSeq(value, "\n") {
			s.Lines = append(s.Lines, strings.Split(line, " ")) // words may have other white space
		}
	case p.Words == ManyWords:
		s.Lines = [][]string{words}
	default:
		s.Lines = slices.Collect(slices.Chunk(words, p.Words))
	}
	return s
}
