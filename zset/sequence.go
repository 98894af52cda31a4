package zset

import (
	"bytes"
	"slices"
)

// sequence is the sorted elements. It finds elements by rank, or by score and member.
type sequence struct {
	tree  *tree   // nil if there is only one chapter
	one   chapter // used while tree is nil
	owner *owner  // chapters and runs with this owner may be changed in place
	text  int     // length of all members together, in bytes
	// the storage of one's only run, unless the set was cloned: it saves a cache miss
	inline [1]run
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

// single reports whether there is only one run, or none.
func (q *sequence) single() bool { return q.tree == nil && len(q.one.runs) <= 1 }

// named reports whether there is only one run, and all of its members name their scores.
func (q *sequence) named() bool {
	return q.single() && (len(q.one.runs) == 0 || q.one.runs[0].scores == nil)
}

// find returns the place of the cut, in the run with the element before it if there is one. In an
// empty sequence that run does not exist.
func (q *sequence) find(c *cut) place {
	if q.tree == nil {
		return q.one.find(c)
	}
	return q.tree.seek(c).find(c)
}

// at returns the place of the i-th element, which must exist.
func (q *sequence) at(i int) place {
	if q.tree == nil {
		return q.one.skip(i)
	}
	ch, i := q.tree.skip(i)
	return ch.skip(i)
}

// rank returns the number of elements before the place.
func (q *sequence) rank(p place) int {
	n := p.ch.before(p.run) + p.i
	if q.tree != nil {
		n += q.tree.before(p.ch)
	}
	return n
}

// locate returns the place of an element, and whether it exists.
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

// own returns the chapter, or if it is shared a copy that replaces it.
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

// count adds n to the number of elements of the chapter.
func (q *sequence) count(ch *chapter, n int) {
	ch.n += n
	if q.tree != nil {
		q.tree.n += n
	}
}

// insert adds an element that does not exist, and returns its index in the run that it was added
// to, if there is one run before and after.
func (q *sequence) insert(member []byte, score float64) (i int) {
	c := cut{throughElement, score, member}
	for {
		p := q.find(&c)
		p.ch = q.own(p.ch)
		if p.ch.n == 0 || p.at().fits(len(member)) || !q.split(p, len(member)) {
			q.put(p, member, score)
			return p.i
		}
	}
}

// push adds an element that is greater than all others.
func (q *sequence) push(member []byte, score float64) {
	p := place{ch: q.own(q.last())}
	if p.ch.n > 0 {
		p.run = len(p.ch.runs) - 1
		p.i = p.at().len()
	}
	q.put(p, member, score)
}

// split splits the full run at the place so that a member of this size may fit, and reports whether
// it did. It does not if a new run is better: at the end, so that logs stay packed, and for large
// members, which get runs of their own and only need a place between two.
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

// put adds an element at a place of a chapter that the set owns: in the run there if it fits,
// otherwise in a new one next to it.
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
		p.ch.runs = q.inline[:0]
	}
	if q.addRun(p.ch, p.run, r) {
		p.ch.settle(p.run)
	}
}

// addRun inserts a run into a chapter that the set owns, and reports whether the chapter was not
// split. A run after the last of a full chapter begins a new chapter, so that logs stay packed.
func (q *sequence) addRun(ch *chapter, i int, r run) (whole bool) {
	ch.runs = slices.Insert(ch.runs, i, r)
	if len(ch.runs) == 2 {
		q.inline = [1]run{} // the first run was moved to runs
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

// remove removes k elements from the place on, all of one run.
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

// removeSpan removes the elements [lo,hi): whole chapters and runs if possible.
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

// drop removes a chapter.
func (q *sequence) drop(ch *chapter) {
	for i := range ch.runs {
		q.text -= ch.runs[i].size()
	}
	if q.tree == nil {
		q.one, q.inline = chapter{owner: q.owner}, [1]run{}
		return
	}
	q.tree.n -= ch.n
	q.tree.chapters.Delete(entry{ch: ch})
	q.fold()
}

// settle merges the chapter with a neighbor if the two are sparse.
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

// join merges two neighboring chapters.
func (q *sequence) join(left, right *chapter) {
	q.tree.chapters.Delete(entry{ch: right})
	left = q.own(left)
	left.runs = append(left.runs, right.runs...)
	left.n += right.n
	q.fold()
}

// fold removes the tree if only one chapter is left.
func (q *sequence) fold() {
	if q.tree.chapters.Len() == 1 {
		q.one, q.tree = *q.tree.first(), nil
	}
}

// clone returns a sequence of the same elements that shares all of them.
func (q *sequence) clone() sequence {
	if q.owner == nil {
		q.one.runs, q.inline = slices.Clone(q.one.runs), [1]run{}
	}
	other := *q
	q.owner, other.owner = new(owner), new(owner)
	if q.tree != nil {
		other.tree = &tree{chapters: q.tree.chapters.Clone(), n: q.tree.n}
	}
	return other
}
