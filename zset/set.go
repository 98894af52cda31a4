package zset

import (
	"math"

	"rlserver/internal/dict"
)

// Set is a sorted set: members with a score each, ordered by score and then by the bytes of the
// member. A Set is not safe for concurrent use, not even by readers, but see Clone. Slices that its
// methods return alias its memory and are valid until its next change; slices passed to them are
// not kept.
//
// A Set that is not empty must not be copied, except for a new clone.
type Set struct {
	index     *dict.Dict[indexed] // nil if it is empty
	seq       sequence
	hash      *dict.Hasher
	unindexed bool // a clone that has not needed its index yet
	hadIndex  bool // the set has an index, or the set from which it was cloned had one
}

// New returns an empty set, whose index hashes members with h.
func New(h *dict.Hasher) *Set { return &Set{hash: h} }

// Len returns the number of members.
func (s *Set) Len() int { return s.seq.len() }

// Size returns the length of all members together, in bytes, and whether there is an index:
// together with Len they determine the memory of the set. It takes constant time.
func (s *Set) Size() (text int, indexed bool) { return s.seq.text, s.hadIndex }

// Score returns the score of a member, and whether it is in the set.
func (s *Set) Score(member []byte) (float64, bool) {
	_, score, ok := s.lookup(member)
	return score, ok
}

// Add adds a member, or changes its score. It returns the old score and whether the member existed.
// An equal score changes nothing, not even 0 to -0. It panics if the score is NaN, which has no
// order.
func (s *Set) Add(member []byte, score float64) (old float64, existed bool) {
	if math.IsNaN(score) {
		panic("zset: score is NaN")
	}
	names := selfScored(member, score)
	if names && s.index == nil && !s.unindexed && s.seq.beyond(member, score) {
		s.seq.push(member, score)
		return 0, false
	}
	p, old, existed := s.lookup(member)
	if !existed {
		s.seq.insert(member, score)
		if !names {
			s.addToIndex(member, score)
		}
		return 0, false
	}
	if old != score {
		s.build() // before the sequence changes
		s.seq.remove(p, 1)
		s.seq.insert(member, score)
		s.updateIndex(member, old, score)
	}
	return old, true
}

// Remove removes a member. It returns its score and whether it existed.
func (s *Set) Remove(member []byte) (score float64, existed bool) {
	p, score, ok := s.lookup(member)
	if ok {
		s.removeFromIndex(member, score)
		s.seq.remove(p, 1)
	}
	return score, ok
}

// Rank returns the number of elements before a member, its score, and whether
// it is in the set.
func (s *Set) Rank(member []byte) (rank int, score float64, ok bool) {
	p, score, ok := s.lookup(member)
	if ok {
		rank = s.seq.rank(p)
	}
	return rank, score, ok
}

// At returns the element of a rank from 0 to Len()-1. It panics for other ranks.
func (s *Set) At(i int) (member []byte, score float64) {
	if i < 0 || i >= s.Len() {
		panic("zset: rank out of range")
	}
	p := s.seq.at(i)
	return p.at().member(p.i), p.at().score(p.i)
}

// Clone returns a copy of the set as it is now. It takes nearly constant time: the two share
// everything until one of them changes, which copies the part that changes. They may be used by
// different goroutines concurrently, but not during Clone.
func (s *Set) Clone() *Set {
	return &Set{hash: s.hash, unindexed: s.unindexed || s.index != nil, hadIndex: s.hadIndex, seq: s.seq.clone()}
}

// The memory of a member in bytes, as measured.
const (
	memberWeight = 56 // beside its text
	// of a member that names its score, like the hits of limiters, beside its text and spare
	// capacity
	hitWeight = 4
)

// Weight estimates how many bytes the members of a set take. It takes constant time.
func (s *Set) Weight() int {
	text, indexed := s.Size()
	if indexed {
		return s.Len()*memberWeight + text
	}
	return s.Len()*hitWeight + text + text/4
}
