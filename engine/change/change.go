// Package change has what a call has done to a key, for those who want to know: subscribers of
// keyspace events, and clients that keep copies of values.
//
// The engine makes a Change of each effect, with its Kind. Whoever knows the command gives it an
// Event: see package rlserver/resp/events.
package change

import "rlserver/engine/effect"

// Change is a change to a key, or an event about it.
type Change struct {
	Kind     effect.Kind
	Reason   Reason
	DB, ToDB int
	Key, To  string
	Created  bool  // the key was missing before
	Writing  bool  // the call may change something
	Gone     bool  // it is missing afterwards
	ExpireAt int64 // its deadline afterwards, Unix ms; 0: none

	Class Class  // of the event
	Event string // its name; empty: there is none
	Late  bool   // the event follows the reply of the call
}

// Touches reports whether it changes the key, and is not only an event about it.
func (c *Change) Touches() bool { return c.Reason != Missed }

// Reason is why a key has changed.
type Reason uint8

const (
	Called  Reason = iota // a call has changed it
	Expired               // it was deleted because it had expired
	Evicted               // it was deleted to free memory
	Missed                // it has not changed: a call that reads has not found it
)
