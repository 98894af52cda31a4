package zset

import "rlserver/dict"

// indexed is what the index knows of a member: enough to find it in the
// sequence, which reports whether it is the one. Two members that agree in both
// have an entry each, and either stands for both.
type indexed struct {
	hash  uint64
	score float64
}

// lookup returns where a member is, its score, and whether it is there.
func (s *Set) lookup(member []byte) (p place, score float64, ok bool) {
	if n, names := named(member); names {
		if p, ok = s.seq.locate(member, float64(n)); ok {
			return p, p.at().score(p.i), true
		}
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

// enter notes the score of a member that was not indexed.
func (s *Set) enter(member []byte, score float64) {
	if s.index == nil {
		s.index, s.spelt = dict.New(func(e indexed) uint64 { return e.hash }), true
	}
	hash := s.hash.Sum(member)
	s.index.Insert(hash, indexed{hash, score})
}

// reenter notes that a member's score changed. From now on the member is in
// the index, if it was not before.
func (s *Set) reenter(member []byte, old, score float64) {
	hash := s.hash.Sum(member)
	is := func(e indexed) bool { return e == indexed{hash, old} }
	if s.index == nil || !s.index.Replace(hash, is, indexed{hash, score}) {
		s.enter(member, score)
	}
}

// leave takes a member out of the index, if it is there.
func (s *Set) leave(member []byte, score float64) {
	if s.index == nil {
		return
	}
	hash := s.hash.Sum(member)
	s.index.Remove(hash, func(e indexed) bool { return e == indexed{hash, score} })
	if s.index.Len() == 0 {
		s.index, s.spelt = nil, false
	}
}

// isIndexed reports whether the index knows a member that is in the set.
func (s *Set) isIndexed(member []byte, score float64) bool {
	if s.index == nil {
		return false
	}
	hash := s.hash.Sum(member)
	_, ok := s.index.Find(hash, func(e indexed) bool { return e == indexed{hash, score} })
	return ok
}

// build makes the index of a clone when it is needed first. It is that of a
// set to which the elements had just been added.
func (s *Set) build() {
	if !s.bare {
		return
	}
	s.bare = false
	for member, score := range s.Ascend(0, s.Len()) {
		if !selfScored(member, score) {
			s.enter(member, score)
		}
	}
}
