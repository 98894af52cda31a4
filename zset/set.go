package zset

import (
	"math"
	"unsafe"

	"rlserver/internal/dict"
	"rlserver/zset/hitlog"
)

// Set is a sorted set: members with a score each, ordered by score and then by the bytes of the
// member. A Set is not safe for concurrent use, not even by readers, but see Clone. Slices that its
// methods return alias its memory and are valid until its next change; slices passed to them are
// not kept.
//
// A Set that is not empty must not be copied, except for a new clone.
type Set struct {
	hash *dict.Hasher
	log  *hitlog.Log // the hits; nil: it has had none
	rest *rest       // the other elements; nil: none
}

// New returns an empty set, whose index hashes members with h.
func New(h *dict.Hasher) *Set { return &Set{hash: h} }

// Len returns the number of members.
func (s *Set) Len() int {
	if s.log == nil {
		return s.rest.len()
	}
	return s.log.Len() + s.rest.len()
}

// Score returns the score of a member, and whether it is in the set.
func (s *Set) Score(member []byte) (float64, bool) {
	if h, ok := s.hit(member); ok {
		return float64(h.At), true
	}
	if s.rest.len() == 0 {
		return 0, false
	}
	_, score, ok := s.rest.lookup(member)
	return score, ok
}

// Add adds a member, or changes its score. It returns the old score and whether the member existed.
// An equal score changes nothing, not even 0 to -0. It panics if the score is NaN, which has no
// order.
func (s *Set) Add(member []byte, score float64) (old float64, existed bool) {
	if math.IsNaN(score) {
		panic("zset: score is NaN")
	}
	if h, ok := s.hit(member); ok {
		if old = float64(h.At); old != score {
			s.log.Remove(h)
			s.others().addMoved(member, score)
		}
		return old, true
	}
	h, isHit := hitOf(member)
	if !isHit || !h.scored(score) {
		return s.others().add(member, score)
	}
	if s.rest.len() > 0 {
		if _, _, existed := s.rest.lookup(member); existed { // it had another score before
			return s.rest.add(member, score)
		}
	}
	s.hits().Add(h.at, h.seq, h.seq+1)
	return 0, false
}

// others returns the elements that are no hits, for a change.
func (s *Set) others() *rest {
	if s.rest == nil {
		s.rest = &rest{hash: s.hash, unindexed: true}
	}
	return s.rest
}

// Remove removes a member. It returns its score and whether it existed.
func (s *Set) Remove(member []byte) (score float64, existed bool) {
	if h, ok := s.hit(member); ok {
		s.log.Remove(h)
		return float64(h.At), true
	}
	if s.rest.len() == 0 {
		return 0, false
	}
	if score, existed = s.rest.remove(member); s.rest.len() == 0 {
		s.rest = nil
	}
	return score, existed
}

// Rank returns the number of elements before a member, its score, and whether
// it is in the set.
func (s *Set) Rank(member []byte) (rank int, score float64, ok bool) {
	if h, ok := s.hit(member); ok {
		at := float64(h.At)
		return s.rank(&cut{belowElement, at, member}), at, true
	}
	if s.rest.len() == 0 {
		return 0, 0, false
	}
	p, score, ok := s.rest.lookup(member)
	if ok {
		rank = s.rest.seq.rank(p) + s.hitsBefore(&cut{belowElement, score, member})
	}
	return rank, score, ok
}

// At returns the element of a rank from 0 to Len()-1. It panics for other ranks.
func (s *Set) At(i int) (member []byte, score float64) {
	others, isHit := s.place(i)
	if !isHit {
		return s.rest.at(others)
	}
	h := s.log.At(i - others)
	return h.Append(nil), float64(h.At)
}

// ScoreAt returns the score of a rank from 0 to Len()-1. It panics for other ranks.
func (s *Set) ScoreAt(i int) float64 {
	// a limiter asks at each denial
	if s.rest == nil && s.log != nil && uint(i) < uint(s.log.Len()) {
		return float64(s.log.TimeAt(i))
	}
	others, isHit := s.place(i)
	if !isHit {
		p := s.rest.seq.at(others)
		return p.at().score(p.i)
	}
	return float64(s.log.TimeAt(i - others))
}

// Clone returns a copy of the set as it is now. It takes nearly constant time: the two share
// everything until one of them changes, which copies the part that changes. They may be used by
// different goroutines concurrently, but not during Clone.
func (s *Set) Clone() *Set {
	other := &Set{hash: s.hash}
	if s.log != nil {
		other.log = s.log.Clone()
	}
	if s.rest != nil {
		other.rest = s.rest.clone()
	}
	return other
}

// The memory of a member in bytes, as measured.
const (
	memberWeight = 56 // beside its text
	// of a member that names its score, beside its text and spare capacity
	namedWeight = 4
	// of another one in a set of one run
	scoredWeight = 16
)

// Weight estimates how many bytes the members of a set take. It takes constant time.
func (s *Set) Weight() (n int) {
	if s.log != nil {
		n = s.log.Weight()
	}
	if s.rest == nil {
		return n
	}
	n += int(unsafe.Sizeof(rest{})) + s.rest.seq.text
	each := namedWeight
	switch {
	case s.rest.seq.single() && !s.rest.seq.named():
		each = scoredWeight
	case s.rest.hadIndex && !s.rest.seq.single():
		return n + s.rest.len()*memberWeight
	}
	return n + s.rest.len()*each + s.rest.seq.text/4
}

// text estimates the length of all members together, in bytes.
func (s *Set) text() (n int) {
	if s.log != nil {
		n = s.log.Text()
	}
	if s.rest != nil {
		n += s.rest.seq.text
	}
	return n
}
