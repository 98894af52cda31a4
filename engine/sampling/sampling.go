// Package sampling finds the key of a shard that is evicted next: of a few neighbors in the order
// of hashes, the one with the lowest worth under the eviction policy.
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

	Found   object.Object // of the keys sampled in the shard; nil: none
	DB      int           // its database
	Expired bool          // it has expired
	Visited int           // how many keys were sampled in the shard

	now    int64
	worth  int64
	enough bool
}

// Look samples keys of a shard at now, Unix ms, which has so many databases; of returns the keys of
// one, nil if there are none, and how many have a deadline.
func (s *Sample) Look(hand *Hand, now int64, databases int, of func(db int) (keys *table.Table, expires int)) {
	s.Found, s.Expired, s.Visited, s.now, s.enough = nil, false, 0, now, false
	for buckets := 0; buckets < maxBuckets && !s.enough; buckets++ {
		keys := s.turn(hand, databases, of)
		if keys == nil {
			return
		}
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
	if s.Expired || s.Keep(o) {
		return
	}
	if o.Expired(s.now) {
		s.Found, s.DB, s.Expired, s.enough = o, db, true, true
		return
	}
	worth, may := s.Policy.Worth(o.Deadline(), o.Accessed(), o.Pressure(), s.now)
	if object.BannedAt(o, s.now) {
		worth |= worthOfBan
	}
	if may && (s.Found == nil || worth < s.worth) {
		s.Found, s.worth, s.DB = o, worth, db
	}
	cheap := s.Found != nil && s.worth < worthOfBan &&
		(s.Policy != eviction.Ratelimit || s.worth < eviction.WorthOf(eviction.PressureHigh))
	s.enough = s.enough || s.Visited >= s.Size && cheap || s.Visited >= s.Size*pickier
}
