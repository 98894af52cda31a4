package acl

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
)

// Error is an error with the text of Redis, which begins with a capital letter.
type Error string

func (e Error) Error() string { return string(e) }

// Errors of rules.
const (
	ErrUnknownCommand      = Error("Unknown command or category name in ACL")
	ErrSyntax              = Error("Syntax error")
	ErrPatternAfterAllKeys = Error("Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid " +
		"and does not have any effect. Try 'resetkeys' to start with an empty list of patterns")
	ErrPatternAfterAllChannels = Error("Adding a pattern after the * pattern (or the 'allchannels' flag) is not " +
		"valid and does not have any effect. Try 'resetchannels' to start with an empty list of channels")
	ErrNoSuchPassword = Error("The password you are trying to remove from the user does not exist")
	ErrBadHash        = Error("The password hash must be exactly 64 characters and contain only lowercase " +
		"hexadecimal characters")
	ErrFirstArgOfSubcommand = Error("Allowing first-arg of a subcommand is not supported")
)

// digest is the SHA-256 of a password.
type digest [sha256.Size]byte

// User is the state and the permissions of a user. It is immutable, so any goroutine may use it.
type User struct {
	catalog      *Catalog
	enabled      bool
	noPassword   bool
	sanitize     sanitize
	passwords    []digest
	selectors    []selector // the root is the first
	unrestricted bool       // it may run every command on every key and channel
}

// sanitize is the setting whether payloads of RESTORE are fully checked. This server always checks
// them and only stores the setting.
type sanitize uint8

const (
	sanitizeUnset sanitize = iota
	sanitizeYes
	sanitizeSkip
)

// NewUser returns a user that is off and has no permissions, like a new user in Redis. allChannels
// is the setting acl-pubsub-default.
func NewUser(c *Catalog, allChannels bool) *User {
	return &User{catalog: c, selectors: []selector{newSelector(c, allChannels)}}
}

// NewDefault returns the initial default user, which may run every call and needs no password.
func NewDefault(c *Catalog) *User {
	return mustApply(NewUser(c, false), "on", "nopass", "~*", "&*", "+@all")
}

// mustApply applies rules that are known to be correct.
func mustApply(u *User, rules ...string) *User {
	u, err := u.Apply(rules, false)
	if err != nil {
		panic(err)
	}
	return u
}

// RuleError is the error of a rule that cannot be applied.
type RuleError struct {
	Rule string
	Err  error
}

// Error returns the text of ACL SETUSER.
func (e *RuleError) Error() string {
	return "Error in ACL SETUSER modifier '" + e.Rule + "': " + e.Err.Error()
}

// Unwrap returns the reason, which does not quote the rule.
func (e *RuleError) Unwrap() error { return e.Err }

// Explain returns the text of an error of Apply or Set for a log. It contains no passwords: it
// quotes only rules with an unknown command or category.
func Explain(err error) string {
	var of *RuleError
	switch {
	case !errors.As(err, &of):
		return err.Error()
	case errors.Is(err, ErrUnknownCommand):
		return "Error in applying operation '" + of.Rule + "': " + of.Err.Error()
	}
	return of.Err.Error()
}

// UnmatchedError is the error of a selector whose parenthesis is not closed.
type UnmatchedError struct{ Rule string }

// Error returns the text of ACL SETUSER.
func (e *UnmatchedError) Error() string {
	return "Unmatched parenthesis in acl selector starting at '" + e.Rule + "'."
}

// Apply applies rules to a copy of the user, and returns the copy. A selector may be one rule or be
// split over several, up to its closing parenthesis. allChannels is the setting acl-pubsub-default,
// for new and reset selectors. The error is a *RuleError or an *UnmatchedError.
func (u *User) Apply(rules []string, allChannels bool) (*User, error) {
	merged, err := mergeSelectors(rules)
	if err != nil {
		return nil, err
	}
	made := *u
	made.passwords, made.selectors = slices.Clone(u.passwords), nil
	for _, s := range u.selectors {
		made.selectors = append(made.selectors, s.clone())
	}
	for _, rule := range merged {
		if err := made.apply(rule, allChannels); err != nil {
			return nil, &RuleError{rule, err}
		}
	}
	root := &made.selectors[0]
	made.unrestricted = root.allCommands && root.allKeys && root.allChannels
	return &made, nil
}

// mergeSelectors joins the parts of selectors that are split over several rules.
func mergeSelectors(rules []string) (merged []string, err error) {
	var parts []string
	for _, rule := range rules {
		switch {
		case parts == nil && strings.HasPrefix(rule, "(") && !strings.HasSuffix(rule, ")"):
			parts = []string{rule}
		case parts == nil:
			merged = append(merged, rule)
		default:
			if parts = append(parts, rule); strings.HasSuffix(rule, ")") {
				merged, parts = append(merged, strings.Join(parts, " ")), nil
			}
		}
	}
	if parts != nil {
		return nil, &UnmatchedError{parts[0]}
	}
	return merged, nil
}

// apply applies one rule to the user.
func (u *User) apply(rule string, allChannels bool) error {
	if rule == "" {
		return nil
	}
	switch strings.ToLower(rule) {
	case "on", "off":
		u.enabled = strings.EqualFold(rule, "on")
		return nil
	case "nopass", "resetpass":
		u.noPassword, u.passwords = strings.EqualFold(rule, "nopass"), nil
		return nil
	case "sanitize-payload":
		u.sanitize = sanitizeYes
		return nil
	case "skip-sanitize-payload":
		u.sanitize = sanitizeSkip
		return nil
	case "clearselectors":
		u.selectors = u.selectors[:1]
		return nil
	case "reset":
		*u = *NewUser(u.catalog, allChannels)
		u.sanitize = sanitizeYes
		return nil
	}
	switch rule[0] {
	case '>', '#', '<', '!':
		return u.applyPassword(rule)
	case '(':
		if strings.HasSuffix(rule, ")") {
			return u.addSelector(rule[1:len(rule)-1], allChannels)
		}
	}
	return u.selectors[0].apply(u.catalog, rule)
}

// applyPassword adds a password (>) or removes one (<), or its digest (# and !).
func (u *User) applyPassword(rule string) error {
	d := digest(sha256.Sum256([]byte(rule[1:])))
	if rule[0] == '#' || rule[0] == '!' {
		raw, err := hex.DecodeString(rule[1:])
		if err != nil || len(raw) != len(d) || strings.ToLower(rule) != rule {
			return ErrBadHash
		}
		d = digest(raw)
	}
	at := slices.Index(u.passwords, d)
	switch {
	case rule[0] == '>' || rule[0] == '#':
		u.noPassword = false
		if at < 0 {
			u.passwords = append(u.passwords, d)
		}
	case at < 0:
		return ErrNoSuchPassword
	default:
		u.passwords = slices.Delete(u.passwords, at, at+1)
	}
	return nil
}

func (u *User) addSelector(rules string, allChannels bool) error {
	s := newSelector(u.catalog, allChannels)
	for _, rule := range strings.FieldsFunc(rules, IsSeparator) {
		if strings.HasSuffix(rule, ")") { // it would end the selector when the user is read back
			return ErrSyntax
		}
		if err := s.apply(u.catalog, rule); err != nil {
			return err
		}
	}
	u.selectors = append(u.selectors, s)
	return nil
}

// IsSeparator reports whether a character separates the rules of a selector, as in Redis.
func IsSeparator(r rune) bool { return r == ' ' || r == '\t' || r == '\r' || r == '\n' }

// size returns the memory of the user in bytes.
func (u *User) size() int {
	n := sha256.Size * len(u.passwords)
	for i := range u.selectors {
		n += u.selectors[i].size()
	}
	return n
}

// longestText returns how many bytes more than size the description of the user may have.
func (u *User) longestText() int {
	const flags = len("off nopass skip-sanitize-payload ")
	const selector = len("( resetchannels allchannels -@all) ")
	return flags + 2*sha256.Size*len(u.passwords) + (selector+u.catalog.textSize)*len(u.selectors)
}

// NeedsLogin reports whether a client must log in before it may act as this user: not if the user
// is on and needs no password.
func (u *User) NeedsLogin() bool { return !u.enabled || !u.noPassword }

// NoPassword reports whether the user accepts any password.
func (u *User) NoPassword() bool { return u.noPassword }

// Unrestricted reports whether the user may run every call, so that Check need not be called.
func (u *User) Unrestricted() bool { return u.unrestricted }

// accepts reports whether a client may log in with a password. It compares with every digest, so
// that the time does not depend on which one matches.
func (u *User) accepts(password []byte) bool {
	given, match := sha256.Sum256(password), 0
	for _, d := range u.passwords {
		match |= subtle.ConstantTimeCompare(given[:], d[:])
	}
	return u.enabled && (u.noPassword || match == 1)
}

// Flags returns the user's rules for on, nopass and sanitize-payload.
func (u *User) Flags() (words []string) {
	words = append(words, map[bool]string{true: "on", false: "off"}[u.enabled])
	if u.noPassword {
		words = append(words, "nopass")
	}
	switch u.sanitize {
	case sanitizeYes:
		words = append(words, "sanitize-payload")
	case sanitizeSkip:
		words = append(words, "skip-sanitize-payload")
	}
	return words
}

// Passwords returns the digests of the passwords in hexadecimal.
func (u *User) Passwords() (list []string) {
	for _, d := range u.passwords {
		list = append(list, hex.EncodeToString(d[:]))
	}
	return list
}

// Part is the description of one selector, in the notation of rules.
type Part struct{ Commands, Keys, Channels string }

// Parts returns the user's selectors, the root first.
func (u *User) Parts() (parts []Part) {
	for i := range u.selectors {
		s := &u.selectors[i]
		parts = append(parts, Part{s.describeCommands(u.catalog), s.describeKeys(), s.describeChannels()})
	}
	return parts
}

// Describe returns rules that turn a new user into an equal one.
func (u *User) Describe() string {
	rules := u.Flags()
	for _, p := range u.Passwords() {
		rules = append(rules, "#"+p)
	}
	for i := range u.selectors {
		text := u.selectors[i].describe(u.catalog)
		if i > 0 {
			text = "(" + text + ")"
		}
		rules = append(rules, text)
	}
	return strings.Join(rules, " ")
}
