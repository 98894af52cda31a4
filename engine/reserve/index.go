package reserve

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// index finds nodes by call: lists of one or two nodes, linked by next. It has a list more for each
// two nodes more (linear hashing: Litwin, 1980), so no call pays for many others. A shared index is
// copied before it is changed.
type index struct {
	heads  []ref
	shared bool
}

// few is up to how many nodes are found without an index.
const few = 8

var seed = maphash.MakeSeed()

func sum(call []byte) uint32 { return uint32(maphash.Bytes(seed, call)) }

// list returns which list has the nodes with a hash.
func (t *index) list(hash uint32) uint32 {
	n := uint32(len(t.heads))
	mask := uint32(1)<<bits.Len32(n-1) - 1
	if i := hash & mask; i < n {
		return i
	}
	return hash & (mask >> 1)
}

// find returns the node of a call with a hash; 0 if there is none.
func (b *Book) find(call []byte, hash uint32) (x ref) {
	if b.index == nil {
		for x = ref(b.n); x > 0 && !b.is(x, call, hash); x-- {
		}
		return x
	}
	for x = b.index.heads[b.index.list(hash)]; x != 0 && !b.is(x, call, hash); {
		x = b.at(x).next
	}
	return x
}

func (b *Book) is(x ref, call []byte, hash uint32) bool {
	return b.at(x).hash == hash && string(b.call(x)) == string(call)
}

// enlist adds the last node to the index.
func (b *Book) enlist(x ref) {
	switch {
	case b.index != nil:
		b.link(x)
		b.grow()
	case b.n > few:
		b.index = &index{heads: make([]ref, few/2)}
		for y := ref(1); y <= x; y++ {
			b.link(y)
		}
	}
}

// link adds a node to its list.
func (b *Book) link(x ref) {
	t := b.ownIndex()
	head := &t.heads[t.list(b.at(x).hash)]
	b.edit(x).next, *head = *head, x
}

// unlist removes a node from the index.
func (b *Book) unlist(x ref) { b.relist(x, b.at(x).next) }

// relist makes the list that leads to a node lead to another one there.
func (b *Book) relist(x, to ref) {
	if b.index == nil {
		return
	}
	t := b.ownIndex()
	head := &t.heads[t.list(b.at(x).hash)]
	if *head == x {
		*head = to
		return
	}
	y := *head
	for b.at(y).next != x {
		y = b.at(y).next
	}
	b.edit(y).next = to
}

// grow adds a list if there are more than two nodes for each.
func (b *Book) grow() {
	n := len(b.index.heads)
	if int(b.n) <= 2*n {
		return
	}
	t := b.ownIndex()
	t.heads = append(t.heads, 0)
	from := &t.heads[n-1<<(bits.Len(uint(n))-1)]
	x := *from
	for *from = 0; x != 0; {
		next := b.at(x).next
		b.link(x)
		x = next
	}
}

// shrink removes a list if there are fewer nodes than lists.
func (b *Book) shrink() {
	switch {
	case b.index == nil || int(b.n) >= len(b.index.heads):
		return
	case b.n < few/2:
		b.index = nil
		return
	}
	t, last := b.ownIndex(), len(b.index.heads)-1
	x := t.heads[last]
	if t.heads = t.heads[:last]; cap(t.heads) > 4*last {
		t.heads = slices.Clone(t.heads)
	}
	for x != 0 {
		next := b.at(x).next
		b.link(x)
		x = next
	}
}

// ownIndex returns the index, to be changed.
func (b *Book) ownIndex() *index {
	if b.index.shared {
		b.index = &index{heads: slices.Clone(b.index.heads)}
	}
	return b.index
}
