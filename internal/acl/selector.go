package acl

import (
	"slices"
	"strings"
)

// selector is a set of commands, key patterns and channel patterns.
type selector struct {
	commands    bits
	allCommands bool // no command was removed since +@all
	future      bool // after +@all: commands of later versions are allowed too
	// by command: with these first arguments it is allowed although its bit is not set
	firstArgs   map[int][]string
	allKeys     bool
	keys        []keyPattern
	allChannels bool
	channels    []pattern
}

func newSelector(c *Catalog, allChannels bool) selector {
	return selector{commands: newBits(len(c.commands)), allChannels: allChannels}
}

func (s selector) clone() selector {
	s.commands, s.keys, s.channels = slices.Clone(s.commands), slices.Clone(s.keys), slices.Clone(s.channels)
	args := s.firstArgs
	s.firstArgs = nil
	for i, list := range args {
		s.addFirstArgs(i, list...)
	}
	return s
}

func (s *selector) addFirstArgs(command int, words ...string) {
	if s.firstArgs == nil {
		s.firstArgs = make(map[int][]string)
	}
	for _, word := range words {
		if !slices.ContainsFunc(s.firstArgs[command], func(w string) bool { return strings.EqualFold(w, word) }) {
			s.firstArgs[command] = append(s.firstArgs[command], word)
		}
	}
}

// Approximate memory, in bytes.
const (
	selectorSize = 160
	patternSize  = 80 // one pattern or first argument, without its text
)

// size returns the memory of the selector in bytes.
func (s *selector) size() int {
	n := selectorSize + 8*len(s.commands)
	for _, p := range s.keys {
		n += patternSize + len(p.text)
	}
	for _, p := range s.channels {
		n += patternSize + len(p.text)
	}
	for _, list := range s.firstArgs {
		for _, word := range list {
			n += patternSize + len(word)
		}
	}
	return n
}

// apply applies one rule, which must not be empty, to the selector.
func (s *selector) apply(c *Catalog, rule string) error {
	switch lower := strings.ToLower(rule); {
	case lower == "allkeys" || rule == "~*":
		s.allKeys, s.keys = true, nil
	case lower == "resetkeys":
		s.allKeys, s.keys = false, nil
	case lower == "allchannels" || rule == "&*":
		s.allChannels, s.channels = true, nil
	case lower == "resetchannels":
		s.allChannels, s.channels = false, nil
	case lower == "allcommands" || lower == "+@all":
		s.setAll(true)
	case lower == "nocommands" || lower == "-@all":
		s.setAll(false)
	case rule[0] == '~' || rule[0] == '%':
		return s.addKeys(rule)
	case rule[0] == '&':
		return s.addChannel(rule[1:])
	case strings.HasPrefix(rule, "+@") || strings.HasPrefix(rule, "-@"):
		return s.setCategory(c, rule[2:], rule[0] == '+')
	case rule[0] == '+' && strings.Contains(rule, "|"):
		return s.allowPart(c, rule[1:])
	case rule[0] == '+' || rule[0] == '-':
		i := c.find(rule[1:])
		if i < 0 {
			return ErrUnknownCommand
		}
		s.setCommand(c, i, rule[0] == '+')
	default:
		return ErrSyntax
	}
	return nil
}

// setAll allows all commands or none.
func (s *selector) setAll(allow bool) {
	s.commands.fill(allow)
	s.allCommands, s.future, s.firstArgs = allow, allow, nil
}

// setCommand allows or denies a command and its subcommands.
func (s *selector) setCommand(c *Catalog, command int, allow bool) {
	s.commands.set(command, allow)
	delete(s.firstArgs, command)
	for _, sub := range c.subs[command] {
		s.commands.set(sub, allow)
	}
	s.allCommands = s.allCommands && allow
}

func (s *selector) setCategory(c *Catalog, name string, allow bool) error {
	set, known := c.categories[strings.ToLower(name)]
	if !known {
		return ErrUnknownCommand
	}
	for i := range c.commands {
		if set.has(i) {
			s.setCommand(c, i, allow)
		}
	}
	return nil
}

// allowPart applies +command|word: a subcommand, or a first argument of a command without
// subcommands.
func (s *selector) allowPart(c *Catalog, rule string) error {
	at := strings.LastIndexByte(rule, '|')
	container, word := c.find(rule[:at]), rule[at+1:]
	switch {
	case container < 0:
		return ErrUnknownCommand
	case strings.Contains(c.commands[container].Name, "|"):
		return ErrFirstArgOfSubcommand
	case word == "" || hasSpaces(word):
		return ErrSyntax
	case len(c.subs[container]) == 0:
		s.addFirstArgs(container, word)
		return nil
	}
	sub := c.find(rule)
	if sub < 0 {
		return ErrUnknownCommand
	}
	s.setCommand(c, sub, true)
	return nil
}
