package reserve

import (
	"fmt"
	"sync/atomic"

	"rlserver/engine/rule"
)

// Request asks for a reservation of a call, for a time.
type Request struct {
	Call []byte
	TTL  int64 // ms; 0: nothing is asked for
}

// Settings are how many reservations a key may have, and for how long calls are remembered. They
// are safe for concurrent use.
type Settings struct {
	most      atomic.Int64 // open ones
	retention atomic.Int64 // ms
}

const (
	DefaultMost      = 100_000
	DefaultRetention = 10 * 60 * 1000 // ms
)

// Init sets the defaults.
func (s *Settings) Init() { s.Set(DefaultMost, DefaultRetention) }

// Set sets how many open reservations a key may have, 1 or more, and for how many ms a call is
// recognized after it was settled or has lapsed.
func (s *Settings) Set(most, retention int64) {
	s.most.Store(most)
	s.retention.Store(retention)
}

// Allows returns an error if a key with some open reservations may not have another one.
func (s *Settings) Allows(open int64, key []byte) error {
	if most := s.most.Load(); open >= most {
		const format = "ERR key '%.128s' has %d open reservations, and max-reservations allows %d: " +
			"settle them with RL.SETTLE, or reserve for a shorter time"
		return rule.Error(fmt.Sprintf(format, key, open, most))
	}
	return nil
}

// SettleShare is which part of the budget of memory may be taken beyond it by settling calls that a
// book does not have. Those that it has take no more memory, and are always settled.
const SettleShare = 16

// maxForgotten is how many reservations one call forgets at most.
const maxForgotten = 8

// Stale returns how many of the first reservations are to be forgotten at Unix millisecond now: a
// few of those that need not be remembered any longer, or that are too many.
func (s *Settings) Stale(b *Book, now int64) int {
	if b.Len() == 0 {
		return 0
	}
	past, before := 0, now-s.retention.Load()
	if b.at(b.first()).until <= before { // rarely
		past = b.Over(before)
	}
	if n := b.Len(); int64(n) > s.most.Load() { // otherwise counting them is not needed
		past = max(past, b.Over(now)-int(s.most.Load()))
	}
	return min(past, maxForgotten)
}

// Ends returns until when a key is needed for its book at Unix millisecond now, if a reservation is
// over at a time: the latest that there is.
func (s *Settings) Ends(b *Book, until int64) int64 {
	if last, ok := b.Last(); ok {
		until = max(until, last)
	}
	return until + s.retention.Load()
}

// Recall returns what is known of a call at Unix millisecond now: its open reservation, or that it
// was settled; ok is false for a call that has lapsed, or is not known.
func (s *Settings) Recall(b *Book, call []byte, now int64) (r Reservation, ok bool) {
	r, ok = b.Find(call)
	switch {
	case !ok || r.Until > now:
		return r, ok
	case r.Settled() && r.Until > now-s.retention.Load():
		return r, true
	}
	return Reservation{}, false
}

// Until returns until when Recall knows a call, Unix ms, if nothing else happens; 0 for one that it
// does not know.
func (s *Settings) Until(r Reservation) int64 {
	switch {
	case r.Call == nil:
		return 0
	case r.Settled():
		return r.Until + s.retention.Load()
	}
	return r.Until
}
