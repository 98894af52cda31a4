package zset

import "bytes"

// cut is a position between two elements, given by a condition for the elements before it.
type cut struct {
	side   side
	score  float64
	member []byte
}

type side uint8

const (
	throughElement side = iota // elements <= (score, member)
	belowElement               // elements < (score, member)
	belowScore                 // scores < score
	throughScore               // scores <= score
	belowMember                // members < member, if all scores are equal
	throughMember              // members <= member, if all scores are equal
)

// follows reports whether the cut is after the i-th element of the run.
func (c *cut) follows(r *run, i int) bool {
	switch c.side {
	case throughElement:
		s := r.score(i)
		return s < c.score || s == c.score && bytes.Compare(r.member(i), c.member) <= 0
	case belowElement:
		s := r.score(i)
		return s < c.score || s == c.score && bytes.Compare(r.member(i), c.member) < 0
	case belowScore:
		return r.score(i) < c.score
	case throughScore:
		return r.score(i) <= c.score
	default:
		return c.afterMember(r.member(i))
	}
}

// afterMember reports whether a cut by members is after one.
func (c *cut) afterMember(member []byte) bool {
	order := bytes.Compare(member, c.member)
	return order < 0 || order == 0 && c.side == throughMember
}

// in returns how many of the run's elements are before the cut.
func (c *cut) in(r *run) int { return c.between(r, 0, r.len()) }

// between is in if the result is known to be in [lo, hi].
func (c *cut) between(r *run, lo, hi int) int {
	for lo < hi {
		if m := int(uint(lo+hi) / 2); c.follows(r, m) {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// gallop is in for cuts that are probably near the beginning of the run.
func (c *cut) gallop(r *run) int {
	hi := 1
	for hi <= r.len() && c.follows(r, hi-1) {
		hi *= 2
	}
	return c.between(r, hi/2, min(hi-1, r.len()))
}
