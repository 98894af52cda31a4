package zset

import "rlserver/internal/dict"

// indexed is the index entry of a member: enough to find it in the sequence, where it is compared.
// Two members with the same hash and score have an entry each, and the entries are interchangeable.
type indexed struct {
	hash  uint64
	score float64
}

// lookup returns the place of a member, its score, and whether it exists.
func (s *rest) lookup(member []byte) (p place, score float64, ok bool) {
	if n, names := named(member); names {
		if p, ok = s.seq.locate(member, float64(n)); ok {
			return p, p.at().score(p.i), true
		}
	}
	if s.unindexed && s.seq.single() {
		if p, ok = s.tagged(member); ok {
			score = p.at().score(p.i)
		}
		return p, score, ok
	}
	s.build()
	if s.index == nil {
		return place{}, 0, false
	}
	hash := s.hash.Sum(member)
	e, ok := s.index.Find(hash, func(e indexed) (is bool) {
		if e.hash == hash {
			p, is = s.seq.locate(member, e.score)
		}
		return is
	})
	return p, e.score, ok
}

// addToIndex adds an entry for a member that is not indexed.
func (s *rest) addToIndex(member []byte, score float64) {
	if s.index == nil {
		s.index = dict.New(func(e indexed) uint64 { return e.hash })
	}
	hash := s.hash.Sum(member)
	s.index.Insert(hash, indexed{hash, score})
}

// updateIndex sets the score of a member whose score has changed, and adds the member to the index
// if it is not there.
func (s *rest) updateIndex(member []byte, old, score float64) {
	hash := s.hash.Sum(member)
	is := func(e indexed) bool { return e == indexed{hash, old} }
	if s.index == nil || !s.index.Replace(hash, is, indexed{hash, score}) {
		s.addToIndex(member, score)
	}
}

// removeFromIndex removes a member from the index, if it is there.
func (s *rest) removeFromIndex(member []byte, score float64) {
	if s.index == nil {
		return
	}
	hash := s.hash.Sum(member)
	s.index.Remove(hash, func(e indexed) bool { return e == indexed{hash, score} })
	if s.index.Len() == 0 {
		s.index, s.hadIndex = nil, false
	}
}

// isIndexed reports whether a member of the set is in the index.
func (s *rest) isIndexed(member []byte, score float64) bool {
	if s.index == nil {
		return false
	}
	hash := s.hash.Sum(member)
	_, ok := s.index.Find(hash, func(e indexed) bool { return e == indexed{hash, score} })
	return ok
}

// build builds the index when it is first needed.
func (s *rest) build() {
	if !s.unindexed {
		return
	}
	s.unindexed = false
	s.ascend(0, func(member []byte, score float64) bool {
		if _, isHit := hitOf(member); isHit || !selfScored(member, score) {
			s.addToIndex(member, score)
		}
		return true
	})
}
