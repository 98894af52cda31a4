package acl

import (
	"bytes"
	"slices"
	"strings"
)

// Access is what a call does with a key.
type Access uint8

const (
	Read  Access = 1 << iota // it returns data of the key
	Write                    // it changes the key
)

// pattern matches names of keys or channels. The two most common kinds need no Matcher.
type pattern struct {
	text   []byte
	plain  []byte // text without its last star if prefix; text itself if exact
	prefix bool   // the only wildcard is a star at the end
	exact  bool   // there is no wildcard
}

func newPattern(text string) pattern {
	p := pattern{text: []byte(text)}
	plain, star := bytes.CutSuffix(p.text, []byte("*"))
	if !bytes.ContainsAny(plain, `*?[\`) {
		p.plain, p.prefix, p.exact = plain, star, !star
	}
	return p
}

// matches reports whether the pattern matches a name. As in Redis, only the empty pattern matches
// the empty name.
func (p *pattern) matches(match Matcher, name []byte) bool {
	switch {
	case p.exact:
		return bytes.Equal(p.plain, name)
	case p.prefix:
		return len(name) > 0 && bytes.HasPrefix(name, p.plain)
	}
	return match(p.text, name)
}

// keyPattern is a pattern of keys and the access that it gives.
type keyPattern struct {
	pattern
	access Access
}

// String returns the pattern in the notation of rules.
func (p keyPattern) String() string {
	switch p.access {
	case Read:
		return "%R~" + string(p.text)
	case Write:
		return "%W~" + string(p.text)
	}
	if string(p.text) == "*" {
		return "%RW~*" // ~* is allkeys, after which no other pattern may follow
	}
	return "~" + string(p.text)
}

// parseKeyPattern reads ~pattern, %R~pattern, %W~pattern or %RW~pattern.
func parseKeyPattern(rule string) (text string, access Access, err error) {
	access, text = Read|Write, rule[1:]
	if rule[0] == '%' {
		letters, rest, _ := strings.Cut(rule[1:], "~")
		if access, err = parseAccess(letters); err != nil {
			return "", 0, err
		}
		text = rest
	}
	if hasSpaces(text) {
		return "", 0, ErrSyntax
	}
	return text, access, nil
}

// parseAccess reads R, W or both in any order and case.
func parseAccess(letters string) (access Access, err error) {
	for _, letter := range strings.ToUpper(letters) {
		one := map[rune]Access{'R': Read, 'W': Write}[letter]
		if one == 0 || access&one != 0 {
			return 0, ErrSyntax
		}
		access |= one
	}
	if access == 0 {
		return 0, ErrSyntax
	}
	return access, nil
}

// hasSpaces reports whether a text has white space or NUL, which rules and user names must not
// have.
func hasSpaces(text string) bool { return strings.ContainsAny(text, " \t\r\n\v\f\x00") }

// addKeys applies a rule with a key pattern. If the selector has the pattern already, the accesses
// are combined.
func (s *selector) addKeys(rule string) error {
	if s.allKeys {
		return ErrPatternAfterAllKeys
	}
	text, access, err := parseKeyPattern(rule)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(s.keys, func(p keyPattern) bool { return string(p.text) == text }); i >= 0 {
		s.keys[i].access |= access
		return nil
	}
	s.keys = append(s.keys, keyPattern{newPattern(text), access})
	return nil
}

// addChannel applies a rule with a channel pattern, given without its &.
func (s *selector) addChannel(text string) error {
	switch {
	case s.allChannels:
		return ErrPatternAfterAllChannels
	case hasSpaces(text):
		return ErrSyntax
	case !slices.ContainsFunc(s.channels, func(p pattern) bool { return string(p.text) == text }):
		s.channels = append(s.channels, newPattern(text))
	}
	return nil
}
