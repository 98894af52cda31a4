package reserve

import (
	"bytes"
	"cmp"

	"rlserver/internal/dict"
)

// ref is the number of a node, from 1; 0 is none.
type ref uint32

// node is a reservation in the tree.
type node struct {
	until, amount int64
	sum           int64 // of the amounts in its subtree; it wraps around, see Held
	left, right   ref
	size          uint32 // of its subtree
	call          name
}

const pageNodes = 64

// page is up to pageNodes nodes. A shared one is copied before it is changed.
type page struct {
	nodes  []node
	shared bool
}

// at returns a node, to be read before the next change.
func (b *Book) at(x ref) *node { return &b.pages[(x-1)/pageNodes].nodes[(x-1)%pageNodes] }

// edit returns a node, to be changed before another one is edited.
func (b *Book) edit(x ref) *node {
	p := &b.pages[(x-1)/pageNodes]
	if p.shared {
		p.nodes, p.shared = append(make([]node, 0, cap(p.nodes)), p.nodes...), false
	}
	return &p.nodes[(x-1)%pageNodes]
}

// add adds a node at the end of the pages. It is not in the tree yet.
func (b *Book) add(call name, r Reservation) ref {
	if b.n%pageNodes == 0 {
		size := pageNodes
		if b.n == 0 {
			size = 1
		}
		b.pages = append(b.pages, page{nodes: make([]node, 0, size)})
	}
	p := &b.pages[len(b.pages)-1]
	if p.shared {
		p.nodes, p.shared = append(make([]node, 0, cap(p.nodes)), p.nodes...), false
	}
	p.nodes = append(p.nodes, node{until: r.Until, amount: r.Amount, call: call})
	b.n++
	return ref(b.n)
}

// drop removes a node, and moves the last one to its place.
func (b *Book) drop(x ref) {
	call := b.at(x).call.text()
	b.text -= nameSize(len(call))
	if b.index != nil {
		b.index.Remove(b.hasher.Sum(call), func(y ref) bool { return y == x })
	}
	b.root = b.remove(b.root, x)
	if last := ref(b.n); last != x {
		b.relocate(last, x)
	}
	b.edit(ref(b.n)).call = name{}
	p := &b.pages[len(b.pages)-1]
	if p.nodes = p.nodes[:len(p.nodes)-1]; len(p.nodes) == 0 {
		b.pages = b.pages[:len(b.pages)-1]
	}
	b.n--
}

// relocate gives a node another number.
func (b *Book) relocate(from, to ref) {
	link := &b.root
	for x := b.root; x != from; {
		n := b.edit(x)
		if b.less(from, x) {
			link = &n.left
		} else {
			link = &n.right
		}
		x = *link
	}
	*link = to
	moved := *b.at(from)
	*b.edit(to) = moved
	if b.index != nil {
		b.index.Replace(b.hasher.Sum(moved.call.text()), func(y ref) bool { return y == from }, to)
	}
}

func (b *Book) reservation(x ref) Reservation {
	n := b.at(x)
	return Reservation{Call: n.call.text(), Amount: n.amount, Until: n.until}
}

// find returns the node of a call; 0 if there is none.
func (b *Book) find(call []byte) (x ref) {
	is := func(x ref) bool { return string(b.at(x).call.text()) == string(call) }
	if b.n <= few && b.index == nil {
		for x = ref(b.n); x > 0 && !is(x); x-- {
		}
		return x
	}
	if b.index == nil {
		b.buildIndex()
	}
	x, _ = b.index.Find(b.hasher.Sum(call), is)
	return x
}

func (b *Book) buildIndex() {
	hash := func(x ref) uint64 { return b.hasher.Sum(b.at(x).call.text()) }
	b.index = dict.New(hash)
	for x := ref(1); x <= ref(b.n); x++ {
		b.index.Insert(hash(x), x)
	}
}

func (b *Book) less(x, y ref) bool {
	m, n := b.at(x), b.at(y)
	if order := cmp.Compare(m.until, n.until); order != 0 {
		return order < 0
	}
	return bytes.Compare(m.call.text(), n.call.text()) < 0
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
	b.join(0, x, 0)
	b.root = b.insert(b.root, x)
}

// insert returns a subtree with one more node.
func (b *Book) insert(root, x ref) ref {
	if root == 0 {
		return x
	}
	n := *b.at(root)
	switch {
	case b.roll(n.size+1) == 0:
		left, right := b.split(root, x)
		return b.join(left, x, right)
	case b.less(x, root):
		return b.join(b.insert(n.left, x), root, n.right)
	}
	return b.join(n.left, root, b.insert(n.right, x))
}

// split returns the nodes of a subtree before and after a node that is not in it.
func (b *Book) split(root, x ref) (before, after ref) {
	if root == 0 {
		return 0, 0
	}
	n := *b.at(root)
	if b.less(root, x) {
		before, after = b.split(n.right, x)
		return b.join(n.left, root, before), after
	}
	before, after = b.split(n.left, x)
	return before, b.join(after, root, n.right)
}

// remove returns a subtree without a node that is in it.
func (b *Book) remove(root, x ref) ref {
	n := *b.at(root)
	switch {
	case root == x:
		return b.merge(n.left, n.right)
	case b.less(x, root):
		return b.join(b.remove(n.left, x), root, n.right)
	}
	return b.join(n.left, root, b.remove(n.right, x))
}

// merge returns one subtree of two, all of whose nodes are in order.
func (b *Book) merge(left, right ref) ref {
	if left == 0 || right == 0 {
		return max(left, right)
	}
	l, r := *b.at(left), *b.at(right)
	if b.roll(l.size+r.size) < l.size {
		return b.join(l.left, left, b.merge(l.right, right))
	}
	return b.join(b.merge(left, r.left), right, r.right)
}

// roll returns a random number below n, by xorshift64* (Vigna, 2016).
func (b *Book) roll(n uint32) uint32 {
	b.dice ^= b.dice >> 12
	b.dice ^= b.dice << 25
	b.dice ^= b.dice >> 27
	high := b.dice * 0x2545f4914f6cdd1d >> 32
	return uint32(high * uint64(n) >> 32)
}

func (b *Book) first() (x ref) {
	for x = b.root; b.at(x).left != 0; {
		x = b.at(x).left
	}
	return x
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
