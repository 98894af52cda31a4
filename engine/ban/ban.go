// Package ban bans who is denied too often: for a time, and each further time for twice as long. It
// has the rule of a policy, and what a key remembers by it.
package ban

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unsafe"

	"rlserver/engine/limit"
)

// Rule is the BAN of a policy: after so many denials within its window, who is denied is banned
// For so many ms, each further time for twice as long, at most Max. The zero value bans nobody.
type Rule struct{ After, For, Max int64 }

// MostDenials is the largest After.
const MostDenials = 1000

// Words returns the words of a definition; none for the zero value.
func (r Rule) Words() []string {
	if r.After == 0 {
		return nil
	}
	words := []string{"BAN", fmt.Sprint(r.After), limit.DurationText(r.For)}
	if r.Max > r.For {
		words = append(words, limit.DurationText(r.Max))
	}
	return words
}

// length returns how long a ban is after some others.
func (r Rule) length(others int64) int64 {
	length := r.For
	for ; others > 0 && length < r.Max; others-- {
		length *= 2
	}
	return min(length, r.Max)
}

// State is what a key remembers of denials and bans. Times are in Unix ms. A nil State is empty,
// and can be read.
type State struct {
	denials []int64 // the recent ones, since the last ban
	numbers
}

type numbers struct {
	Bans  int64 // how many there were in a row
	Until int64 // the end of the latest one
	quiet int64 // when the bans are forgotten, if there is no other denial
	needs int64 // until when the key is needed for all this
}

// Left returns for how many ms a ban lasts at now; 0: there is none.
func (s *State) Left(now int64) int64 {
	if s == nil {
		return 0
	}
	return max(s.Until-now, 0)
}

// Answer returns an answer with a ban that lasts for so many ms; 0: there is none.
func Answer(d limit.Decision, left int64) limit.Decision {
	if left == 0 {
		return d
	}
	d.Allowed, d.Free, d.Remaining = false, false, 0
	if d.RetryAfter != limit.Never {
		d.RetryAfter = max(d.RetryAfter, left)
	}
	d.ResetAfter = max(d.ResetAfter, left)
	return d
}

// Needed returns until when the key is needed for the state.
func (s *State) Needed() int64 {
	if s == nil {
		return 0
	}
	return s.needs
}

// Denials returns how many denials are remembered.
func (s *State) Denials() int {
	if s == nil {
		return 0
	}
	return len(s.denials)
}

// Deny returns the change by a denial at now, outside of a ban: how many of the first denials are
// forgotten, and what Apply adds. until is when the ban ends that it causes; 0: it causes none.
func (s *State) Deny(r Rule, window, now int64) (forgotten int, change []byte, needed, until int64) {
	var n numbers
	var denials []int64
	if s != nil {
		if denials = s.denials; now < s.quiet {
			n = s.numbers
		}
	}
	for forgotten < len(denials) && denials[forgotten] <= now-window {
		forgotten++
	}
	if int64(len(denials)-forgotten+1) >= r.After {
		n.Until = limit.After(now, r.length(n.Bans))
		n.Bans++
		n.quiet = limit.After(n.Until, r.Max)
		n.needs = n.quiet
		return len(denials), n.append(nil), n.needs, n.Until
	}
	if n.Bans > 0 {
		n.quiet = limit.After(now, r.Max)
	}
	n.needs = max(n.quiet, limit.After(now, window))
	return forgotten, binary.AppendVarint(n.append(nil), now), n.needs, 0
}

func (n *numbers) append(b []byte) []byte {
	for _, one := range [...]int64{n.Bans, n.Until, n.quiet, n.needs} {
		b = binary.AppendVarint(b, one)
	}
	return b
}

// Append appends the whole state, as Apply reads it.
func (s *State) Append(b []byte) []byte {
	b = s.numbers.append(b)
	for _, at := range s.denials {
		b = binary.AppendVarint(b, at)
	}
	return b
}

// Apply applies a change that Fits. It returns nil for a state that is empty then. The state may
// be nil.
func (s *State) Apply(forgotten int, change []byte) *State {
	if s == nil {
		s = new(State)
	}
	n, added, _ := parse(change)
	s.numbers = n
	s.denials = append(s.denials[:0], s.denials[forgotten:]...)
	if s.denials = append(s.denials, added...); len(s.denials) == 0 && n == (numbers{}) {
		return nil
	}
	return s
}

// Lift returns the change after which the state is empty.
func (s *State) Lift() (forgotten int, change []byte) { return s.Denials(), new(numbers).append(nil) }

// Fits reports whether Apply can apply a change.
func (s *State) Fits(forgotten int, change []byte) bool {
	n, added, ok := parse(change)
	for _, at := range added {
		ok = ok && at >= 0
	}
	known := s.Denials()
	return ok && min(n.Bans, n.Until, n.quiet, n.needs) >= 0 && 0 <= forgotten && forgotten <= known &&
		known-forgotten+len(added) <= MostDenials
}

func parse(change []byte) (n numbers, added []int64, ok bool) {
	for i := 0; len(change) > 0 || i < 4; i++ {
		value, size := binary.Varint(change)
		if size <= 0 {
			return numbers{}, nil, false
		}
		change = change[size:]
		switch i {
		case 0:
			n.Bans = value
		case 1:
			n.Until = value
		case 2:
			n.quiet = value
		case 3:
			n.needs = value
		default:
			added = append(added, value)
		}
	}
	return n, added, true
}

// Clone returns a copy.
func (s *State) Clone() *State {
	if s == nil {
		return nil
	}
	return &State{slices.Clone(s.denials), s.numbers}
}

// MoveBack returns the change after which times are moved, and whether there is any: move returns
// the new time of one that may be in the future, and past that of one that has been.
func (s *State) MoveBack(move, past func(at int64) int64) (forgotten int, change []byte, moved bool) {
	if s == nil {
		return 0, nil, false
	}
	c := s.Clone()
	for i := range c.denials {
		c.denials[i] = past(c.denials[i])
	}
	c.Until, c.quiet, c.needs = move(c.Until), move(c.quiet), move(c.needs)
	return len(s.denials), c.Append(nil), c.numbers != s.numbers || !slices.Equal(c.denials, s.denials)
}

// Weight is in bytes.
func (s *State) Weight() int64 {
	if s == nil {
		return 0
	}
	return int64(unsafe.Sizeof(*s)) + int64(cap(s.denials))*8
}
