package zset

import "github.com/google/btree"

// tree holds the chapters of a sequence that has more than one, in the order
// of their first elements. Those may change, as long as the order stays.
type tree struct {
	chapters *btree.BTreeG[entry]
	n        int // elements in all chapters
	probe    cut // the argument of seek, kept here to avoid an allocation
}

// entry is a chapter in the tree, or a cut whose chapter is searched.
type entry struct {
	ch  *chapter
	cut *cut
}

// degree allows nodes of up to 63 chapters, or half a million elements.
const degree = 32

func newTree() *tree { return &tree{chapters: btree.NewG(degree, less)} }

func less(a, b entry) bool {
	switch {
	case a.cut != nil:
		return !a.cut.follows(&b.ch.runs[0], 0)
	case b.cut != nil:
		return b.cut.follows(&a.ch.runs[0], 0)
	}
	first := &a.ch.runs[0]
	c := cut{side: throughElement, score: first.score(0), member: first.member(0)}
	return !c.follows(&b.ch.runs[0], 0)
}

func (t *tree) first() *chapter {
	e, _ := t.chapters.Min()
	return e.ch
}

func (t *tree) last() *chapter {
	e, _ := t.chapters.Max()
	return e.ch
}

// seek returns the last chapter that begins before the cut, or the first.
func (t *tree) seek(c *cut) (ch *chapter) {
	member := append(t.probe.member[:0], c.member...)
	t.probe = cut{c.side, c.score, member}
	t.chapters.DescendLessOrEqual(entry{cut: &t.probe}, func(e entry) bool {
		ch = e.ch
		return false
	})
	if cap(member) > maxBytes {
		t.probe.member = nil
	}
	if ch == nil {
		ch = t.first()
	}
	return ch
}

// skip returns the chapter of the n-th element and its index there.
func (t *tree) skip(n int) (ch *chapter, rest int) {
	t.chapters.Ascend(func(e entry) bool {
		ch = e.ch
		if n < ch.n {
			return false
		}
		n -= ch.n
		return true
	})
	return ch, n
}

// before returns the number of elements in the chapters before ch.
func (t *tree) before(ch *chapter) (n int) {
	t.chapters.Ascend(func(e entry) bool {
		if e.ch == ch {
			return false
		}
		n += e.ch.n
		return true
	})
	return n
}

// next returns the chapter after ch, or nil.
func (t *tree) next(ch *chapter) (next *chapter) {
	t.chapters.AscendGreaterOrEqual(entry{ch: ch}, func(e entry) bool {
		if e.ch == ch {
			return true
		}
		next = e.ch
		return false
	})
	return next
}

// previous returns the chapter before ch, or nil.
func (t *tree) previous(ch *chapter) (previous *chapter) {
	t.chapters.DescendLessOrEqual(entry{ch: ch}, func(e entry) bool {
		if e.ch == ch {
			return true
		}
		previous = e.ch
		return false
	})
	return previous
}
