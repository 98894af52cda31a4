package reserve

import (
	"bytes"
	"slices"
)

// ref is the number of a node, from 1; 0 is none.
type ref uint32

// node is a reservation in the tree.
type node struct {
	until, amount int64
	sum           int64 // of the amounts in its subtree; it wraps around, see Held
	left, right   ref
	size          uint32 // of its subtree
	hash          uint32 // of the call; it is its priority in the tree too
	next          ref    // in its list of the index
	call          uint32 // where it begins in the text of the page
}

// at returns a node, to be read before the next change.
func (b *Book) at(x ref) *node { return &b.pages[(x-1)/pageNodes].nodes[(x-1)%pageNodes] }

// edit returns a node, to be changed before another one is edited.
func (b *Book) edit(x ref) *node {
	p := &b.pages[(x-1)/pageNodes]
	if p.shared {
		p.own()
	}
	return &p.nodes[(x-1)%pageNodes]
}

// add adds a node at the end of the pages. It is not in the tree yet, nor in the index.
func (b *Book) add(r Reservation, hash uint32) ref {
	if b.n%pageNodes == 0 {
		b.pages = append(b.pages, nextPage(b.pages))
	}
	p := &b.pages[len(b.pages)-1]
	if p.shared {
		p.own()
	}
	p.nodes = append(p.nodes, node{until: r.Until, amount: r.Amount, hash: hash, call: p.write(r.Call)})
	b.n++
	return ref(b.n)
}

// drop removes a node, and moves the last one to its place.
func (b *Book) drop(x ref) {
	b.text -= nameSize(len(b.call(x)))
	b.unlist(x)
	b.take(x)
	if last := ref(b.n); last != x {
		b.relocate(last, x)
	}
	end := len(b.pages) - 1
	if p := &b.pages[end]; len(p.nodes) > 1 {
		p.pop()
		p.tidy()
	} else {
		*p = page{}
		if b.pages = b.pages[:end]; cap(b.pages) > 4*end {
			b.pages = slices.Clone(b.pages)
		}
	}
	if i := int(x-1) / pageNodes; i < end {
		b.pages[i].tidy()
	}
	b.n--
	b.shrink()
}

// relocate gives a node the number, and the place in a page, of one that is in use no more.
func (b *Book) relocate(from, to ref) {
	parent, left := ref(0), false
	for x := b.root; x != from; {
		parent, left = x, b.less(from, x)
		if n := b.at(x); left {
			x = n.left
		} else {
			x = n.right
		}
	}
	b.hang(parent, left, to)
	b.relist(from, to)
	moved, n := *b.at(from), b.edit(to)
	p := &b.pages[(to-1)/pageNodes]
	moved.call = p.rewrite(n.call, b.call(from))
	*n = moved
}

// call returns the text of a node's call, until the next change.
func (b *Book) call(x ref) []byte {
	p := &b.pages[(x-1)/pageNodes]
	return p.read(p.nodes[(x-1)%pageNodes].call)
}

func (b *Book) reservation(x ref) Reservation {
	n := b.at(x)
	return Reservation{Call: b.call(x), Amount: n.amount, Until: n.until}
}

func (b *Book) less(x, y ref) bool {
	m, n := b.at(x), b.at(y)
	if m.until != n.until {
		return m.until < n.until
	}
	return bytes.Compare(b.call(x), b.call(y)) < 0
}

// totals returns the size and the sum of a subtree.
func (b *Book) totals(x ref) (size uint32, sum int64) {
	if x == 0 {
		return 0, 0
	}
	n := b.at(x)
	return n.size, n.sum
}

// join makes two subtrees those of a node, and returns the node.
func (b *Book) join(left, x, right ref) ref {
	size, sum := b.totals(left)
	more, add := b.totals(right)
	n := b.edit(x)
	n.left, n.right = left, right
	n.size, n.sum = size+more+1, sum+add+n.amount
	return x
}

// place puts a node that is in no tree into the tree.
func (b *Book) place(x ref) {
	hash, amount := b.at(x).hash, b.at(x).amount
	parent, left, y := ref(0), false, b.root
	for y != 0 && b.at(y).hash >= hash {
		n := b.edit(y)
		n.size, n.sum = n.size+1, n.sum+amount
		if parent, left = y, b.less(x, y); left {
			y = n.left
		} else {
			y = n.right
		}
	}
	before, after := b.split(y, x)
	b.join(before, x, after)
	b.hang(parent, left, x)
}

// take takes a node out of the tree.
func (b *Book) take(x ref) {
	amount := b.at(x).amount
	parent, left, y := ref(0), false, b.root
	for y != x {
		n := b.edit(y)
		n.size, n.sum = n.size-1, n.sum-amount
		if parent, left = y, b.less(x, y); left {
			y = n.left
		} else {
			y = n.right
		}
	}
	n := b.at(x)
	b.hang(parent, left, b.merge(n.left, n.right))
}

// hang makes a subtree the left or right one of a node, or the tree without a node.
func (b *Book) hang(parent ref, left bool, x ref) {
	switch {
	case parent == 0:
		b.root = x
	case left:
		b.edit(parent).left = x
	default:
		b.edit(parent).right = x
	}
}

// split returns the nodes of a subtree before and after a node that is not in it.
func (b *Book) split(root, x ref) (before, after ref) {
	if root == 0 {
		return 0, 0
	}
	left, right := b.at(root).left, b.at(root).right
	if b.less(root, x) {
		before, after = b.split(right, x)
		return b.join(left, root, before), after
	}
	before, after = b.split(left, x)
	return before, b.join(after, root, right)
}

// merge returns one subtree of two, all of whose nodes are in order.
func (b *Book) merge(left, right ref) ref {
	if left == 0 || right == 0 {
		return max(left, right)
	}
	if l := b.at(left); l.hash >= b.at(right).hash {
		from, most := l.left, l.right
		return b.join(from, left, b.merge(most, right))
	}
	from, most := b.at(right).left, b.at(right).right
	return b.join(b.merge(left, from), right, most)
}

func (b *Book) first() (x ref) {
	for x = b.root; b.at(x).left != 0; {
		x = b.at(x).left
	}
	return x
}

// last returns the last node of a subtree, and the one above it; 0 if there is none.
func (b *Book) last(root ref) (above, x ref) {
	for x = root; b.at(x).right != 0; {
		above, x = x, b.at(x).right
	}
	return above, x
}

// before returns how many reservations are over at a time, and the sum of their amounts.
func (b *Book) before(now int64) (count int, sum int64) {
	for x := b.root; x != 0; {
		n := b.at(x)
		if n.until > now {
			x = n.left
			continue
		}
		size, left := b.totals(n.left)
		count, sum = count+int(size)+1, sum+left+n.amount
		x = n.right
	}
	return count, sum
}

// Lapse returns the first time after now, Unix ms, at which a reservation lapses and from which on
// admits is true: a condition that remains true, of a time and of what is held from then on. ok is
// false if there is none. It asks a logarithmic number of times.
func (b *Book) Lapse(now int64, admits func(at, held int64) bool) (at int64, ok bool) {
	if b.Len() == 0 {
		return 0, false
	}
	after := int64(0) // what is held after the subtree
	for x := b.root; x != 0; {
		n := b.at(x)
		_, right := b.totals(n.right)
		if n.until > now && admits(n.until, after+right) {
			at, ok = n.until, true
			after += right + n.amount
			x = n.left
		} else {
			x = n.right
		}
	}
	return at, ok
}

// walk yields the nodes of a subtree from a rank on, and reports whether to go on.
func (b *Book) walk(x ref, from int, yield func(Reservation) bool) bool {
	if x == 0 {
		return true
	}
	n := b.at(x)
	size, _ := b.totals(n.left)
	if from < int(size) && !b.walk(n.left, from, yield) {
		return false
	}
	if from <= int(size) && !yield(b.reservation(x)) {
		return false
	}
	return b.walk(n.right, from-int(size)-1, yield)
}
