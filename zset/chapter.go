package zset

import "slices"

const (
	maxRuns    = 64 // runs in a chapter
	sparseRuns = maxRuns / 2
)

// chapter is a list of consecutive runs and the number of their elements. No run in it is empty.
type chapter struct {
	n     int
	runs  []run
	owner *owner
}

// place is a position between two elements: before the i-th of a run of a chapter, or after its
// last if i is the run's length.
type place struct {
	ch     *chapter
	run, i int
}

func (p place) at() *run { return &p.ch.runs[p.run] }

// find returns the place of the cut, in the run with the element before it if there is one.
func (ch *chapter) find(c *cut) place {
	lo, hi := 0, len(ch.runs) // the runs below lo begin before the cut
	for lo < hi {
		if m := int(uint(lo+hi) / 2); c.follows(&ch.runs[m], 0) {
			lo = m + 1
		} else {
			hi = m
		}
	}
	if lo == 0 {
		return place{ch: ch}
	}
	return place{ch, lo - 1, c.in(&ch.runs[lo-1])}
}

// skip returns the place with n of the chapter's elements before it, in the run with the element
// after it. n is below the number of elements.
func (ch *chapter) skip(n int) place {
	i := 0
	for ; n >= ch.runs[i].len(); i++ {
		n -= ch.runs[i].len()
	}
	return place{ch, i, n}
}

// before returns the number of elements in the runs before the i-th.
func (ch *chapter) before(i int) (n int) {
	for j := range i {
		n += ch.runs[j].len()
	}
	return n
}

// own returns the i-th run, for changes by the chapter's owner.
func (ch *chapter) own(i int) *run {
	r := &ch.runs[i]
	if r.owner != ch.owner {
		r.disown(ch.owner)
	}
	return r
}

// settle merges the i-th run with its neighbors if they are sparse.
func (ch *chapter) settle(i int) {
	if i+1 < len(ch.runs) && ch.runs[i].joins(&ch.runs[i+1]) {
		ch.join(i)
	}
	if i > 0 && i < len(ch.runs) && ch.runs[i-1].joins(&ch.runs[i]) {
		ch.join(i - 1)
	}
}

// join merges the i-th run and the next.
func (ch *chapter) join(i int) {
	ch.own(i).absorb(&ch.runs[i+1])
	ch.runs = slices.Delete(ch.runs, i+1, i+2)
}

// split splits the chapter before its k-th run and returns the second part.
func (ch *chapter) split(k int) *chapter {
	right := &chapter{runs: slices.Clone(ch.runs[k:]), owner: ch.owner}
	right.n = ch.n - ch.before(k)
	ch.n -= right.n
	clear(ch.runs[k:])
	ch.runs = ch.runs[:k]
	return right
}
