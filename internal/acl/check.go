package acl

import "strings"

// Key is a key or a channel that a call names.
type Key struct {
	Name    []byte
	Access  Access // to a key: what the command does with it; 0: any access suffices
	Channel bool   // it is a channel
	Pattern bool   // it is a pattern of channels, which only an equal pattern allows
}

// Verdict is the result of a check. Of several selectors that deny a call, the greatest verdict is
// reported.
type Verdict uint8

const (
	Allowed Verdict = iota
	DeniedCommand
	DeniedKey
	DeniedChannel
	DeniedAuth // a failed login, not a denied call
)

// String returns the reason as ACL LOG shows it.
func (v Verdict) String() string {
	return [...]string{"allowed", "command", "key", "channel", "auth"}[v]
}

// Call is a call to check.
type Call struct {
	Command  int    // its index in the catalog
	FirstArg []byte // nil: no argument
	Keys     []Key
}

// Check reports whether the user may run a call. If a key or channel is denied, Check returns its
// index in Keys.
func (u *User) Check(call *Call) (verdict Verdict, denied int) {
	if u.unrestricted {
		return Allowed, 0
	}
	verdict = DeniedCommand
	for i := range u.selectors {
		v, which := u.selectors[i].check(u.catalog, call)
		switch {
		case v == Allowed:
			return Allowed, 0
		case v > verdict || v == verdict && which > denied:
			verdict, denied = v, which
		}
	}
	return verdict, denied
}

// AllowsOneKey reports whether a selector that allows the command itself gives the access to the
// key. It is a fast path for the most common calls: if it returns false, Check decides.
func (u *User) AllowsOneKey(command int, key []byte, access Access) bool {
	for i := range u.selectors {
		s := &u.selectors[i]
		if s.commands.has(command) && s.allowsKey(u.catalog.match, key, access) {
			return true
		}
	}
	return false
}

func (s *selector) check(c *Catalog, call *Call) (Verdict, int) {
	i := call.Command
	if !s.allCommands && !s.commands.has(i) && !c.commands[i].Open && !s.allowsFirstArg(call) {
		return DeniedCommand, 0
	}
	for i := range call.Keys {
		switch k := &call.Keys[i]; {
		case k.Channel && !s.allowsChannel(c.match, k):
			return DeniedChannel, i
		case !k.Channel && !s.allowsKey(c.match, k.Name, k.Access):
			return DeniedKey, i
		}
	}
	return Allowed, 0
}

// AllowsAnyKey reports whether the user may run a call that accesses keys which its arguments do
// not name, such as SORT with BY: one selector must allow the call and give the access to every
// key.
func (u *User) AllowsAnyKey(call *Call, access Access) bool {
	for i := range u.selectors {
		s := &u.selectors[i]
		if v, _ := s.check(u.catalog, call); v == Allowed && s.allowsAnyKey(access) {
			return true
		}
	}
	return false
}

func (s *selector) allowsFirstArg(call *Call) bool {
	if call.FirstArg == nil {
		return false
	}
	for _, word := range s.firstArgs[call.Command] {
		if strings.EqualFold(word, string(call.FirstArg)) {
			return true
		}
	}
	return false
}

func (s *selector) allowsKey(match Matcher, name []byte, access Access) bool {
	if s.allKeys {
		return true
	}
	for i := range s.keys {
		p := &s.keys[i]
		if p.access&access == access && p.matches(match, name) {
			return true
		}
	}
	return false
}

// allowsAnyKey reports whether the selector gives the access to every key, by ~*, %R~* or %W~*.
func (s *selector) allowsAnyKey(access Access) bool {
	if s.allKeys {
		return true
	}
	for _, p := range s.keys {
		if p.access&access == access && string(p.text) == "*" {
			return true
		}
	}
	return false
}

// AllowsChannel reports whether a selector gives access to a channel, or to a pattern of channels.
func (u *User) AllowsChannel(name []byte, pattern bool) bool {
	for i := range u.selectors {
		if u.selectors[i].allowsChannel(u.catalog.match, &Key{Name: name, Channel: true, Pattern: pattern}) {
			return true
		}
	}
	return false
}

func (s *selector) allowsChannel(match Matcher, k *Key) bool {
	if s.allChannels {
		return true
	}
	for i := range s.channels {
		p := &s.channels[i]
		if string(p.text) == string(k.Name) || !k.Pattern && p.matches(match, k.Name) {
			return true
		}
	}
	return false
}
