package zset

import (
	"bytes"
	"fmt"
	"math"
)

// Check returns the first invariant of the set that does not hold, or nil.
func (s *Set) Check() error {
	if s.log != nil {
		if err := s.log.Check(); err != nil {
			return fmt.Errorf("log: %w", err)
		}
	}
	if s.rest == nil {
		return nil
	}
	if s.rest.len() == 0 {
		return fmt.Errorf("no elements beside the log")
	}
	err := s.rest.check()
	if err != nil {
		return err
	}
	s.rest.ascend(0, func(member []byte, score float64) bool {
		h, ok := hitOf(member)
		_, inLog := s.hit(member)
		switch {
		case inLog:
			err = fmt.Errorf("%q is in the log too", member)
		case ok && h.scored(score) && !s.rest.unindexed && !s.rest.isIndexed(member, score):
			err = fmt.Errorf("%q is not in the log, and not in the index", member)
		}
		return err == nil
	})
	return err
}

func (s *rest) check() error {
	if err := s.seq.check(); err != nil {
		return err
	}
	text := 0
	s.ascend(0, func(member []byte, _ float64) bool {
		text += len(member)
		return true
	})
	if s.seq.text != text || s.index != nil && !s.hadIndex && !s.seq.single() {
		return fmt.Errorf("size %d, indexed %t, of members with %d bytes", s.seq.text, s.hadIndex, text)
	}
	if err := s.checkTags(); err != nil {
		return err
	}
	if s.index != nil && (s.unindexed || s.index.Len() == 0) {
		return fmt.Errorf("index of %d, unindexed %t", s.index.Len(), s.unindexed)
	}
	if s.unindexed {
		return nil
	}
	inIndex := 0
	var err error
	s.ascend(0, func(member []byte, score float64) bool {
		switch {
		case s.isIndexed(member, score):
			inIndex++
		case !selfScored(member, score):
			err = fmt.Errorf("member %q of score %v is not in the index", member, score)
		}
		return err == nil
	})
	if err == nil && s.index != nil && s.index.Len() != inIndex {
		err = fmt.Errorf("index of %d for %d members", s.index.Len(), inIndex)
	}
	return err
}

func (s *rest) checkTags() error {
	if len(s.tags) > 0 && !s.seq.single() {
		return fmt.Errorf("%d tags of several runs", len(s.tags))
	}
	for i, tag := range s.tags {
		if member, _ := s.at(i); len(s.tags) == s.len() && tag != tagOf(member) {
			return fmt.Errorf("tag %d of %q", tag, member)
		}
	}
	return nil
}

func (q *sequence) check() error {
	if inlined := len(q.one.runs) == 1 && &q.one.runs[0] == &q.inline[0]; !inlined && q.inline[0].starts != nil {
		return fmt.Errorf("the inline run is set but not used")
	} else if inlined && q.owner != nil {
		return fmt.Errorf("a set that was cloned uses its inline run")
	}
	if q.tree == nil {
		return q.one.check(nil)
	}
	if q.one.runs != nil || q.tree.chapters.Len() < 2 {
		return fmt.Errorf("tree of %d chapters beside one of %d runs", q.tree.chapters.Len(), len(q.one.runs))
	}
	var err error
	var previous *run
	n := 0
	q.tree.chapters.Ascend(func(e entry) bool {
		if e.ch.n == 0 {
			err = fmt.Errorf("empty chapter in the tree")
			return false
		}
		err = e.ch.check(previous)
		previous = &e.ch.runs[len(e.ch.runs)-1]
		n += e.ch.n
		return err == nil
	})
	if err == nil && n != q.tree.n {
		err = fmt.Errorf("%d elements in the chapters, tree.n %d", n, q.tree.n)
	}
	return err
}

// check returns the first invariant of the chapter that does not hold. previous is the run before
// the chapter, or nil.
func (ch *chapter) check(previous *run) error {
	if len(ch.runs) > maxRuns {
		return fmt.Errorf("chapter of %d runs", len(ch.runs))
	}
	n := 0
	for i := range ch.runs {
		r := &ch.runs[i]
		if err := r.check(); err != nil {
			return fmt.Errorf("run %d: %w", i, err)
		}
		if previous != nil && !ordered(previous, previous.len()-1, r, 0) {
			return fmt.Errorf("run %d begins with %q, after %q", i, r.member(0), previous.member(previous.len()-1))
		}
		previous = r
		n += r.len()
	}
	if n != ch.n {
		return fmt.Errorf("%d elements in the runs, n %d", n, ch.n)
	}
	return nil
}

func (r *run) check() error {
	if r.len() <= 0 || r.len() > maxMembers || r.len() > 1 && r.size() > maxBytes {
		return fmt.Errorf("%d members of %d bytes", r.len(), r.size())
	}
	if r.scores != nil && len(r.scores) != len(r.starts) {
		return fmt.Errorf("%d scores for %d members", len(r.scores), len(r.starts))
	}
	if math.Float64bits(r.low) != math.Float64bits(r.readScore(0)) {
		return fmt.Errorf("low is %v", r.low)
	}
	if math.Float64bits(r.high) != math.Float64bits(r.readScore(r.len()-1)) {
		return fmt.Errorf("high is %v", r.high)
	}
	for j := range len(r.starts) {
		if r.offset(j) > r.offset(j+1) {
			return fmt.Errorf("member %d begins at %d, the next at %d", j, r.offset(j), r.offset(j+1))
		}
	}
	for i := range r.len() {
		if r.scores == nil && !selfScored(r.member(i), r.score(i)) {
			return fmt.Errorf("%q does not name its score", r.member(i))
		}
		if i > 0 && !ordered(r, i-1, r, i) {
			return fmt.Errorf("%q comes after %q", r.member(i), r.member(i-1))
		}
	}
	return nil
}

// ordered reports whether element i of a run comes before element j of another.
func ordered(a *run, i int, b *run, j int) bool {
	x, y := a.score(i), b.score(j)
	return x < y || x == y && bytes.Compare(a.member(i), b.member(j)) < 0
}
