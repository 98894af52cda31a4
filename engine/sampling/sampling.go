// Package sampling finds the keys of a shard that are evicted next: of a few neighbors in the order
// of hashes, those with the lowest worth under the eviction policy.
package sampling

import (
	"math"

	"rlserver/engine/eviction"
	"rlserver/engine/object"
	"rlserver/engine/table"
	"rlserver/internal/dict"
)

// Hand is the position in a shard at which sampling continues. It goes around in the order of
// hashes, which no client can predict.
type Hand struct {
	db     int
	cursor uint64
}

const (
	// buckets examined under one lock; most are skipped because their keys have no deadline
	maxBuckets = 64
	pickier    = 8       // factor for the number of samples while no key of low worth is found
	worthOfBan = 1 << 62 // more than any key without a ban has
)

// Sample samples keys.
type Sample struct {
	Policy eviction.Policy
	Size   int                      // how many keys, at least
	Keep   func(object.Object) bool // keys that may not be evicted now

	Visited int // how many keys were sampled in the shard

	found  [most]Found // the first n, in the order of their worth
	n      int
	may    int // how many of those sampled may be evicted
	now    int64
	enough bool
}

// most is how many keys a look finds at most.
const most = 4

// Found is a key that was sampled.
type Found struct {
	Object  object.Object
	DB      int
	Expired bool // it is gone for clients
	worth   int64
}

// Found returns the keys to evict, those of the lowest worth: one, or another one for each Size
// keys of those that may be evicted, as long as their worth is low. Of several that have expired it
// is one.
func (s *Sample) Found() []Found {
	n := min(s.n, 1)
	for n < s.n && (n+1)*s.Size <= s.may && s.cheap(n) {
		n++
	}
	return s.found[:n]
}

// Look samples keys of a shard at now, Unix ms, which has so many databases; of returns the keys of
// one, nil if there are none, and how many have a deadline.
func (s *Sample) Look(hand *Hand, now int64, databases int, of func(db int) (keys *table.Table, expires int)) {
	clear(s.found[:])
	s.n, s.may, s.Visited, s.now, s.enough = 0, 0, 0, now, false
	for buckets := 0; buckets < maxBuckets && !s.enough; buckets++ {
		keys := s.turn(hand, databases, of)
		if keys == nil {
			return
		}
		keys.PrefetchAt(hand.cursor)
		if s.Policy.Volatile() {
			hand.cursor = keys.Sweep(hand.cursor, dict.AnyTime, 1, func(o object.Object) int64 {
				s.visit(hand.db, o)
				if at := o.Deadline(); at != 0 {
					return at
				}
				return math.MaxInt64
			})
		} else {
			hand.cursor = keys.Scan(hand.cursor, 1, func(o object.Object) { s.visit(hand.db, o) })
		}
		if hand.cursor == 0 {
			hand.db++
		}
	}
}

// turn moves the hand to the next database that has keys, with a deadline if the policy is
// volatile. It stays in a database that it is within.
func (s *Sample) turn(hand *Hand, databases int, of func(db int) (*table.Table, int)) *table.Table {
	for range databases + 1 {
		hand.db %= databases
		if keys, expires := of(hand.db); keys != nil && keys.Len() > 0 && (!s.Policy.Volatile() || expires > 0) {
			return keys
		}
		*hand = Hand{db: hand.db + 1}
	}
	return nil
}

// visit compares one more key with the best so far.
func (s *Sample) visit(db int, o object.Object) {
	s.Visited++
	if s.found[0].Expired || s.Keep(o) {
		return
	}
	f := Found{Object: o, DB: db}
	if o.Expired(s.now) {
		f.Expired = true
		s.found[0], s.n, s.enough = f, 1, true
		return
	}
	worth, may := s.Policy.Worth(o.Deadline(), o.Accessed(), o.Pressure(), s.now)
	if object.BannedAt(o, s.now) {
		worth |= worthOfBan
	}
	if f.worth = worth; may {
		s.add(f)
	}
	s.enough = s.enough || s.Visited >= s.Size && s.n > 0 && s.cheap(0) || s.Visited >= s.Size*pickier
}

// add adds a key to those of the lowest worth. A look that goes around meets keys again.
func (s *Sample) add(f Found) {
	for i := range s.n {
		if s.found[i].Object == f.Object {
			return
		}
	}
	s.may++
	i := s.n
	for i > 0 && f.worth < s.found[i-1].worth {
		if i < most {
			s.found[i] = s.found[i-1]
		}
		i--
	}
	if i < most {
		s.found[i] = f
		s.n = min(s.n+1, most)
	}
}

// cheap reports whether the worth of a key is so low that no further key needs to be sampled.
func (s *Sample) cheap(i int) bool {
	worth := s.found[i].worth
	return worth < worthOfBan &&
		(s.Policy != eviction.Ratelimit || worth < eviction.WorthOf(eviction.PressureHigh))
}
