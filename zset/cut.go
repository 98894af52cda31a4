package zset

import "bytes"

// cut is a place between two elements, given by what lies before it.
type cut struct {
	side   side
	score  float64
	member []byte
}

type side uint8

const (
	throughElement side = iota // elements up to and with (score, member) lie before
	belowElement               // elements up to but without it
	belowScore                 // scores < score
	throughScore               // scores <= score
	belowMember                // members < member, all scores being equal
	throughMember              // members <= member, all scores being equal
)

// follows reports whether the cut lies after the i-th element of the run.
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
	case belowMember:
		return bytes.Compare(r.member(i), c.member) < 0
	default:
		return bytes.Compare(r.member(i), c.member) <= 0
	}
}

// in returns how many of the run's elements lie before the cut.
func (c *cut) in(r *run) int { return c.between(r, 0, r.len()) }

// between is in when it is known to be lo at least and hi at most.
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

// gallop is in for cuts that are likely near the beginning of the run.
func (c *cut) gallop(r *run) int {
	hi := 1
	for hi <= r.len() && c.follows(r, hi-1) {
		hi *= 2
	}
	return c.between(r, hi/2, min(hi-1, r.len()))
}
