package zset

import (
	"bytes"
	"slices"
)

// sequence is the elements in order. It knows ranks, but finds an element only
// by score and member.
type sequence struct {
	tree  *tree   // nil while one chapter is enough
	one   chapter // used while tree is nil
	owner *owner  // whose chapters and runs may be changed in place
	text  int     // bytes of all members together
	// where one keeps its first run, while that is its only one and there never was a clone: memory
	// that is at hand
	room [1]run
}

func (q *sequence) len() int {
	if q.tree == nil {
		return q.one.n
	}
	return q.tree.n
}

func (q *sequence) first() *chapter {
	if q.tree == nil {
		return &q.one
	}
	return q.tree.first()
}

func (q *sequence) last() *chapter {
	if q.tree == nil {
		return &q.one
	}
	return q.tree.last()
}

// find returns the place of the cut, in the run that holds the element before
// it if there is one. In an empty sequence that run does not exist.
func (q *sequence) find(c *cut) place {
	if q.tree == nil {
		return q.one.find(c)
	}
	return q.tree.seek(c).find(c)
}

// at returns the place of the i-th element, which there must be.
func (q *sequence) at(i int) place {
	if q.tree == nil {
		return q.one.skip(i)
	}
	ch, i := q.tree.skip(i)
	return ch.skip(i)
}

// rank is the number of elements before the place.
func (q *sequence) rank(p place) int {
	n := p.ch.before(p.run) + p.i
	if q.tree != nil {
		n += q.tree.before(p.ch)
	}
	return n
}

// locate returns the place of an element, and whether it is there.
func (q *sequence) locate(member []byte, score float64) (place, bool) {
	if q.beyond(member, score) {
		return place{}, false
	}
	p := q.find(&cut{throughElement, score, member})
	p.i--
	if p.i < 0 || p.at().score(p.i) != score || !bytes.Equal(p.at().member(p.i), member) {
		return place{}, false
	}
	return p, true
}

// beyond reports whether an element would come after all others.
func (q *sequence) beyond(member []byte, score float64) bool {
	last := q.last()
	if last.n == 0 {
		return true
	}
	r := &last.runs[len(last.runs)-1]
	i := r.len() - 1
	if s := r.score(i); s != score {
		return s < score
	}
	return bytes.Compare(r.member(i), member) < 0
}

// ascend yields the elements from the place on.
func (q *sequence) ascend(p place, yield func([]byte, float64) bool) {
	walk := func(ch *chapter) bool {
		for ; p.run < len(ch.runs); p.run++ {
			r := &ch.runs[p.run]
			for ; p.i < r.len(); p.i++ {
				if !yield(r.member(p.i), r.score(p.i)) {
					return false
				}
			}
			p.i = 0
		}
		p.run = 0
		return true
	}
	if q.tree == nil {
		walk(&q.one)
		return
	}
	q.tree.chapters.AscendGreaterOrEqual(entry{ch: p.ch}, func(e entry) bool { return walk(e.ch) })
}

// descend yields the elements from the one at the place down to the first.
func (q *sequence) descend(p place, yield func([]byte, float64) bool) {
	walk := func(ch *chapter) bool {
		for run := len(ch.runs) - 1; run >= 0; run-- {
			r := &ch.runs[run]
			i := r.len() - 1
			if p.ch != nil {
				run, r, i = p.run, p.at(), p.i
				p.ch = nil
			}
			for ; i >= 0; i-- {
				if !yield(r.member(i), r.score(i)) {
					return false
				}
			}
		}
		return true
	}
	if q.tree == nil {
		walk(&q.one)
		return
	}
	q.tree.chapters.DescendLessOrEqual(entry{ch: p.ch}, func(e entry) bool { return walk(e.ch) })
}

// own returns the chapter itself or, if it is shared, a copy in its place.
func (q *sequence) own(ch *chapter) *chapter {
	if ch.owner == q.owner {
		return ch
	}
	mine := chapter{ch.n, slices.Clone(ch.runs), q.owner}
	if q.tree == nil {
		q.one = mine
		return &q.one
	}
	q.tree.chapters.ReplaceOrInsert(entry{ch: &mine})
	return &mine
}

// count notes that the chapter has n more elements.
func (q *sequence) count(ch *chapter, n int) {
	ch.n += n
	if q.tree != nil {
		q.tree.n += n
	}
}

// insert adds an element that is not there.
func (q *sequence) insert(member []byte, score float64) {
	c := cut{throughElement, score, member}
	for {
		p := q.find(&c)
		p.ch = q.own(p.ch)
		if p.ch.n == 0 || p.at().fits(len(member)) || !q.split(p, len(member)) {
			q.put(p, member, score)
			return
		}
	}
}

// push adds an element beyond all others.
func (q *sequence) push(member []byte, score float64) {
	p := place{ch: q.own(q.last())}
	if p.ch.n > 0 {
		p.run = len(p.ch.runs) - 1
		p.i = p.at().len()
	}
	q.put(p, member, score)
}

// split parts the full run at the place so that a member of this size may fit,
// and reports whether it did. It does not where a new run serves better: at
// the end, so that logs stay packed, and for large members, which are to have
// runs of their own and only need a place between two.
func (q *sequence) split(p place, size int) bool {
	r := p.at()
	edge := p.i == 0 || p.i == r.len()
	large := r.len() == 1 || size > sparseBytes
	if edge && (large || q.isEnd(p)) {
		return false
	}
	k := r.middle()
	if large {
		k = p.i
	}
	q.addRun(p.ch, p.run+1, p.ch.own(p.run).split(k))
	return true
}

func (q *sequence) isEnd(p place) bool {
	return p.ch == q.last() && p.run == len(p.ch.runs)-1 && p.i == p.at().len()
}

// put adds an element at a place of an own chapter: in the run there if it
// fits, in a new one beside it if not.
func (q *sequence) put(p place, member []byte, score float64) {
	q.count(p.ch, 1)
	q.text += len(member)
	if p.run < len(p.ch.runs) && p.at().fits(len(member)) {
		p.ch.own(p.run).insert(p.i, member, score)
		return
	}
	r := run{owner: q.owner}
	if p.run < len(p.ch.runs) && p.i > 0 {
		if full := p.at(); full.len() == maxMembers && q.isEnd(p) {
			r.reserveLike(full)
		}
		p.run++
	}
	r.insert(0, member, score)
	if p.ch.runs == nil && q.owner == nil {
		p.ch.runs = q.room[:0]
	}
	if q.addRun(p.ch, p.run, r) {
		p.ch.settle(p.run)
	}
}

// addRun puts a run into an own chapter and reports whether it stayed whole.
// The chapter after the last is begun afresh, so that logs stay packed.
func (q *sequence) addRun(ch *chapter, i int, r run) (whole bool) {
	ch.runs = slices.Insert(ch.runs, i, r)
	if len(ch.runs) == 2 {
		q.room = [1]run{} // it has moved out
	}
	if len(ch.runs) <= maxRuns {
		return true
	}
	k := maxRuns / 2
	if i == maxRuns && ch == q.last() {
		k = maxRuns
	}
	right := ch.split(k)
	if q.tree == nil {
		q.tree = newTree()
		q.tree.n = ch.n + right.n
		left := q.one
		q.one = chapter{}
		ch = &left
		q.tree.chapters.ReplaceOrInsert(entry{ch: ch})
	}
	q.tree.chapters.ReplaceOrInsert(entry{ch: right})
	return false
}

// remove takes out the k elements from the place on, all of one run.
func (q *sequence) remove(p place, k int) {
	if k == p.ch.n {
		q.drop(p.ch)
		return
	}
	ch := q.own(p.ch)
	q.text -= p.at().text(p.i, p.i+k)
	if k == ch.runs[p.run].len() {
		ch.runs = slices.Delete(ch.runs, p.run, p.run+1)
	} else {
		ch.own(p.run).cut(p.i, p.i+k)
	}
	q.count(ch, -k)
	ch.settle(p.run)
	q.settle(ch)
}

// removeSpan takes out the elements from lo up to hi: chapters and runs as a
// whole where it can.
func (q *sequence) removeSpan(lo, hi int) {
	for left := hi - lo; left > 0; {
		p := q.at(lo)
		if p.run == 0 && p.i == 0 && left >= p.ch.n {
			left -= p.ch.n
			q.drop(p.ch)
			continue
		}
		k := min(left, p.at().len()-p.i)
		left -= k
		q.remove(p, k)
	}
}

// drop takes out a chapter.
func (q *sequence) drop(ch *chapter) {
	for i := range ch.runs {
		q.text -= ch.runs[i].size()
	}
	if q.tree == nil {
		q.one, q.room = chapter{owner: q.owner}, [1]run{}
		return
	}
	q.tree.n -= ch.n
	q.tree.chapters.Delete(entry{ch: ch})
	q.fold()
}

// settle merges the chapter with a neighbour if the two are sparse.
func (q *sequence) settle(ch *chapter) {
	if q.tree == nil || len(ch.runs) > sparseRuns/2 {
		return
	}
	if next := q.tree.next(ch); next != nil && len(ch.runs)+len(next.runs) <= sparseRuns {
		q.join(ch, next)
	} else if previous := q.tree.previous(ch); previous != nil && len(previous.runs)+len(ch.runs) <= sparseRuns {
		q.join(previous, ch)
	}
}

// join makes one chapter of two neighbours.
func (q *sequence) join(left, right *chapter) {
	q.tree.chapters.Delete(entry{ch: right})
	left = q.own(left)
	left.runs = append(left.runs, right.runs...)
	left.n += right.n
	q.fold()
}

// fold does away with the tree when one chapter is left.
func (q *sequence) fold() {
	if q.tree.chapters.Len() == 1 {
		q.one, q.tree = *q.tree.first(), nil
	}
}

// clone returns a sequence of the same elements that shares all of them.
func (q *sequence) clone() sequence {
	if q.owner == nil {
		q.one.runs, q.room = slices.Clone(q.one.runs), [1]run{}
	}
	other := *q
	q.owner, other.owner = new(owner), new(owner)
	if q.tree != nil {
		other.tree = &tree{chapters: q.tree.chapters.Clone(), n: q.tree.n}
	}
	return other
}
