package zset

import (
	"math"

	"rlserver/dict"
)

// Set is a sorted set: members with a score each, ordered by score and then
// by the bytes of the member. A Set is not safe for concurrent use, not even
// by readers, but see Clone. Slices that its methods hand out alias its memory
// and are good until its next change; slices handed to them are not kept.
//
// A Set that holds something must not be copied, but for a fresh clone.
type Set struct {
	index *dict.Dict[indexed] // nil while there is nothing in it
	seq   sequence
	hash  *dict.Hasher
	bare  bool // a clone that has not needed its index yet
	spelt bool // there is an index, or was one in the set that this is a clone of
}

// New returns an empty set, whose index hashes members with h.
func New(h *dict.Hasher) *Set { return &Set{hash: h} }

// Len returns the number of members.
func (s *Set) Len() int { return s.seq.len() }

// Size returns what the memory that the set takes depends on beside its length:
// the bytes of all members together, and whether there is an index, as not all
// members name their scores. It takes no time.
func (s *Set) Size() (text int, indexed bool) { return s.seq.text, s.spelt }

// Score returns the score of a member, and whether it is in the set.
func (s *Set) Score(member []byte) (float64, bool) {
	_, score, ok := s.lookup(member)
	return score, ok
}

// Add inserts a member, or moves it to another score. It returns the score it
// had and whether it was there. A score that is equal changes nothing, not
// even 0 to -0. NaN has no place in the order and panics.
func (s *Set) Add(member []byte, score float64) (old float64, existed bool) {
	if math.IsNaN(score) {
		panic("zset: score is NaN")
	}
	names := selfScored(member, score)
	if names && s.index == nil && !s.bare && s.seq.beyond(member, score) {
		s.seq.push(member, score)
		return 0, false
	}
	p, old, existed := s.lookup(member)
	if !existed {
		s.seq.insert(member, score)
		if !names {
			s.enter(member, score)
		}
		return 0, false
	}
	if old != score {
		s.build() // while the sequence is still what it was
		s.seq.remove(p, 1)
		s.seq.insert(member, score)
		s.reenter(member, old, score)
	}
	return old, true
}

// Remove takes a member out. It returns the score it had and whether it was
// there.
func (s *Set) Remove(member []byte) (score float64, existed bool) {
	p, score, ok := s.lookup(member)
	if ok {
		s.leave(member, score)
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

// At returns the element of a rank from 0 to Len()-1; others panic.
func (s *Set) At(i int) (member []byte, score float64) {
	if i < 0 || i >= s.Len() {
		panic("zset: rank out of range")
	}
	p := s.seq.at(i)
	return p.at().member(p.i), p.at().score(p.i)
}

// Clone returns a copy of the set as it is now. It takes next to no time:
// the two share everything until one of them changes, and then the part that
// changes is copied. They may be used from different goroutines at once,
// though not while Clone runs.
func (s *Set) Clone() *Set {
	return &Set{hash: s.hash, bare: s.bare || s.index != nil, spelt: s.spelt, seq: s.seq.clone()}
}

// What a member takes in memory, in bytes, as measured.
const (
	memberWeight = 56 // beside its text
	// of a member that names its score, as the hits of limiters do, beside its text and the room
	// behind that
	hitWeight = 4
)

// Weight estimates how many bytes the members of a set take. It does not walk through them.
func (s *Set) Weight() int {
	text, indexed := s.Size()
	if indexed {
		return s.Len()*memberWeight + text
	}
	return s.Len()*hitWeight + text + text/4
}
