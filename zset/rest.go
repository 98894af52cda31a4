package zset

import "rlserver/internal/dict"

// rest is the elements of a set that are not in its log.
type rest struct {
	index     *dict.Dict[indexed] // nil if it is empty
	seq       sequence
	hash      *dict.Hasher
	unindexed bool // the index has not been needed yet: of one run, or of a clone
	hadIndex  bool // of several runs: changes have made an index, see Set.Weight
	// while unindexed and one run: a tag of each member, in order; too few: not needed yet
	tags []byte
}

func (s *rest) len() int {
	if s == nil {
		return 0
	}
	return s.seq.len()
}

// add adds a member that does not exist, or changes its score, see Set.Add.
func (s *rest) add(member []byte, score float64) (old float64, existed bool) {
	names := selfScored(member, score)
	if names && s.index == nil && (!s.unindexed || s.seq.named()) && s.seq.beyond(member, score) {
		s.seq.push(member, score)
		s.grown()
		return 0, false
	}
	p, old, existed := s.lookup(member)
	if existed && old == score {
		return old, true
	}
	if existed {
		if !s.seq.single() {
			s.build() // before the sequence changes
		}
		s.untag(p.i, 1)
		s.seq.remove(p, 1)
	}
	s.tag(s.seq.insert(member, score), member)
	switch {
	case s.unindexed:
		s.grown()
	case existed:
		s.updateIndex(member, old, score)
	case !names:
		s.addToIndex(member, score)
	}
	s.hadIndex = s.index != nil
	return old, existed
}

// addMoved adds a member that has been in the log, with another score: it is in the index even if
// it names the score, see Scan.
func (s *rest) addMoved(member []byte, score float64) {
	if !selfScored(member, score) {
		s.add(member, score)
		return
	}
	s.build()
	s.seq.insert(member, score)
	s.tags = nil
	s.addToIndex(member, score)
	s.hadIndex = true
}

// grown builds the index when the set begins to need one.
func (s *rest) grown() {
	if s.unindexed && !s.seq.single() {
		s.build()
		s.tags, s.hadIndex = nil, s.index != nil
	}
}

// remove removes a member. It returns its score and whether it existed.
func (s *rest) remove(member []byte) (score float64, existed bool) {
	p, score, ok := s.lookup(member)
	if ok {
		s.removeFromIndex(member, score)
		s.untag(p.i, 1)
		s.seq.remove(p, 1)
	}
	return score, ok
}

// at returns the element of a rank, which exists.
func (s *rest) at(i int) (member []byte, score float64) {
	p := s.seq.at(i)
	return p.at().member(p.i), p.at().score(p.i)
}

func (s *rest) rank(c *cut) int { return s.seq.rank(s.seq.find(c)) }

func (s *rest) clone() *rest {
	return &rest{hash: s.hash, unindexed: s.unindexed || s.index != nil, hadIndex: s.hadIndex, seq: s.seq.clone()}
}

// firstAfter returns the rank of the first element with a greater score. It is fast near both ends,
// where a limiter's window begins and ends.
func (s *rest) firstAfter(score float64) int {
	if s.len() == 0 {
		return 0
	}
	end := s.seq.last()
	last := &end.runs[len(end.runs)-1]
	if last.high <= score {
		return s.len()
	}
	first := &s.seq.first().runs[0]
	if first.low > score {
		return 0
	}
	c := cut{side: throughScore, score: score}
	if n := c.gallop(first); n < first.len() {
		return n
	}
	if c.follows(last, 0) {
		return s.len() - last.len() + c.in(last)
	}
	return s.rank(&c)
}

// ascend yields the elements from a rank on, which may be the length.
func (s *rest) ascend(lo int, yield func([]byte, float64) bool) {
	if lo < s.len() {
		s.seq.ascend(s.seq.at(lo), yield)
	}
}

// descend yields the elements before a rank, from the last to the first.
func (s *rest) descend(hi int, yield func([]byte, float64) bool) {
	if hi > 0 && s.len() > 0 {
		s.seq.descend(s.seq.at(hi-1), yield)
	}
}

// removeSpan removes the elements of the ranks [lo,hi), which exist.
func (s *rest) removeSpan(lo, hi int) {
	if hi-lo == s.len() {
		s.index, s.hadIndex, s.unindexed = nil, false, false
	}
	s.untag(lo, hi-lo)
	if s.index != nil {
		left := hi - lo
		s.ascend(lo, func(member []byte, score float64) bool {
			if left == 0 {
				return false
			}
			left--
			s.removeFromIndex(member, score)
			return true
		})
	}
	s.seq.removeSpan(lo, hi)
}
