package zset

import "iter"

// ScoreRange is the scores from Min to Max, without open ends.
type ScoreRange struct {
	Min, Max         float64
	MinOpen, MaxOpen bool
}

// LexRange is the members from Min to Max in the order of their bytes. It is defined for sets whose
// scores are all equal; for others it selects what a binary search for its ends finds, as in Redis.
type LexRange struct{ Min, Max LexBound }

// LexBound is one end of a LexRange: [x, (x, - or +.
type LexBound struct {
	Member   []byte
	Open     bool // (x: without the member itself
	Infinite int8 // negative for -, positive for +; then the other fields are ignored
}

// FirstAfter returns the rank of the first element with a greater score, Len() if there is none. It
// is fast near both ends, where a limiter's window begins and ends.
func (s *Set) FirstAfter(score float64) int {
	if s.log == nil {
		return s.rest.firstAfter(score)
	}
	n := s.log.After(timeThrough(score))
	if s.rest != nil {
		n += s.rest.firstAfter(score)
	}
	return n
}

// ScoreSpan returns the ranks [lo,hi) of the elements with a score in the
// range; lo == hi if there are none.
func (s *Set) ScoreSpan(r ScoreRange) (lo, hi int) {
	from, to := cut{side: belowScore, score: r.Min}, cut{side: throughScore, score: r.Max}
	if r.MinOpen {
		from.side = throughScore
	}
	if r.MaxOpen {
		to.side = belowScore
	}
	lo = s.rank(&from)
	return lo, max(lo, s.rank(&to))
}

// LexSpan returns the ranks [lo,hi) of the elements with a member in the
// range; lo == hi if there are none.
func (s *Set) LexSpan(r LexRange) (lo, hi int) {
	lo = s.lexRank(r.Min, belowMember, throughMember)
	return lo, max(lo, s.lexRank(r.Max, throughMember, belowMember))
}

func (s *Set) lexRank(b LexBound, closed, open side) int {
	switch {
	case b.Infinite < 0:
		return 0
	case b.Infinite > 0:
		return s.Len()
	case b.Open:
		closed = open
	}
	return s.rank(&cut{side: closed, member: b.Member})
}

func (s *Set) rank(c *cut) (n int) {
	if s.rest.len() > 0 {
		n = s.rest.rank(c)
	}
	return n + s.hitsBefore(c)
}

// Ascend returns the elements of those ranks [lo,hi) that exist, in order. The set must not be
// changed while they are ranged over.
func (s *Set) Ascend(lo, hi int) iter.Seq2[[]byte, float64] {
	return func(yield func([]byte, float64) bool) {
		if lo, hi := s.clip(lo, hi); lo < hi {
			s.ascend(lo, hi, yield)
		}
	}
}

// Descend returns the elements of those ranks [lo,hi) that exist, from the last to the first. The
// set must not be changed while they are ranged over.
func (s *Set) Descend(lo, hi int) iter.Seq2[[]byte, float64] {
	return func(yield func([]byte, float64) bool) {
		if lo, hi := s.clip(lo, hi); lo < hi {
			s.descend(lo, hi, yield)
		}
	}
}

// RemoveSpan removes the elements of the ranks [lo,hi) and returns how many
// there were.
func (s *Set) RemoveSpan(lo, hi int) int {
	if lo, hi = s.clip(lo, hi); lo == hi {
		return 0
	}
	from, to := s.othersBefore(lo), s.othersBefore(hi)
	if s.log != nil {
		s.log.RemoveSpan(lo-from, hi-to)
	}
	if from < to {
		if s.rest.removeSpan(from, to); s.rest.len() == 0 {
			s.rest = nil
		}
	}
	return hi - lo
}

// clip returns the part of [lo,hi) that is within the set.
func (s *Set) clip(lo, hi int) (int, int) {
	hi = max(0, min(hi, s.Len()))
	return max(0, min(lo, hi)), hi
}
