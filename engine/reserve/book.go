package reserve

import (
	"encoding/binary"
	"iter"
	"math/rand/v2"
	"unsafe"

	"rlserver/internal/dict"
)

// Reservation is an amount that a call holds. An amount of 0 is a call that was settled at the time
// Until.
type Reservation struct {
	Call   []byte
	Amount int64
	Until  int64 // Unix ms; it counts before that time
}

// Settled reports whether the call has said how much it uses.
func (r Reservation) Settled() bool { return r.Amount == 0 }

// Book is the reservations of a key. A nil Book is empty, and can be read. It is not safe for
// concurrent use.
type Book struct {
	hasher *dict.Hasher
	pages  []page
	n      uint32 // nodes
	root   ref
	dice   uint64
	index  *dict.Dict[ref] // nil for a few nodes, and in a clone until it is needed
	text   int64           // bytes of the calls, as allocated
}

// few is up to how many nodes are found by looking at each.
const few = 8

// New returns an empty book. h hashes the calls.
func New(h *dict.Hasher) *Book { return &Book{hasher: h, dice: rand.Uint64() | 1} }

// Len returns how many reservations there are, those that are over included.
func (b *Book) Len() int {
	if b == nil {
		return 0
	}
	return int(b.n)
}

// Find returns the reservation of a call.
func (b *Book) Find(call []byte) (r Reservation, ok bool) {
	if b == nil {
		return r, false
	}
	if x := b.find(call); x != 0 {
		return b.reservation(x), true
	}
	return r, false
}

// Put adds a reservation, in place of that of the same call. It copies the call.
func (b *Book) Put(r Reservation) {
	if x := b.find(r.Call); x != 0 {
		b.root = b.remove(b.root, x)
		n := b.edit(x)
		n.until, n.amount = r.Until, r.Amount
		b.place(x)
		return
	}
	x := b.add(newName(r.Call), r)
	b.text += nameSize(len(r.Call))
	b.place(x)
	switch {
	case b.index != nil:
		b.index.Insert(b.hasher.Sum(r.Call), x)
	case b.n > few:
		b.buildIndex()
	}
}

// Forget removes the first n reservations.
func (b *Book) Forget(n int) {
	for ; n > 0 && b.n > 0; n-- {
		b.drop(b.first())
	}
}

// Held returns the sum of the amounts that are held at a time, Unix ms.
func (b *Book) Held(now int64) int64 {
	if b == nil || b.n == 0 {
		return 0
	}
	_, over := b.before(now)
	return b.at(b.root).sum - over
}

// Over returns how many reservations are over at a time, Unix ms: those that are settled, and those
// that have lapsed. They are the first ones.
func (b *Book) Over(now int64) int {
	if b == nil {
		return 0
	}
	over, _ := b.before(now)
	return over
}

// Open returns how many reservations are not over at a time, Unix ms.
func (b *Book) Open(now int64) int { return b.Len() - b.Over(now) }

// Last returns when the last reservation is over, Unix ms; ok is false if there is none.
func (b *Book) Last() (at int64, ok bool) {
	if b.Len() == 0 {
		return 0, false
	}
	x := b.root
	for b.at(x).right != 0 {
		x = b.at(x).right
	}
	return b.at(x).until, true
}

// All yields the reservations in order, from a rank on. They are valid until the next change.
func (b *Book) All(from int) iter.Seq[Reservation] {
	return func(yield func(Reservation) bool) {
		if b != nil {
			b.walk(b.root, from, yield)
		}
	}
}

// Clone returns a copy. What it costs hardly depends on the number of reservations.
func (b *Book) Clone() *Book {
	if b == nil {
		return nil
	}
	c := *b
	for i := range b.pages {
		b.pages[i].shared = true
	}
	c.index, c.pages = nil, append([]page(nil), b.pages...)
	return &c
}

// Weight returns how many bytes the book takes. It depends only on the reservations.
func (b *Book) Weight() int64 {
	if b == nil {
		return 0
	}
	return int64(unsafe.Sizeof(*b)) + int64(b.n)*Size + b.text
}

// Size is how many bytes a reservation takes, without its call: a node, and its part of the hash
// table.
const Size = int64(unsafe.Sizeof(node{})) + 10

// name is the text of a call, with its length before it.
type name struct{ at *byte }

func newName(text []byte) name {
	b := make([]byte, 0, uvarintSize(len(text))+len(text))
	b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	return name{&b[0]}
}

func (n name) text() []byte {
	length, size := uint64(*n.at), 1
	if length >= 0x80 {
		head := unsafe.Slice(n.at, headSize(n.at))
		length, size = binary.Uvarint(head)
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(n.at), size)), length)
}

// headSize returns how many bytes a length takes.
func headSize(at *byte) (n int) {
	for n = 1; *at >= 0x80; n++ {
		at = (*byte)(unsafe.Add(unsafe.Pointer(at), 1))
	}
	return n
}

func uvarintSize(n int) (size int) {
	var b [binary.MaxVarintLen64]byte
	return binary.PutUvarint(b[:], uint64(n))
}

// nameSize returns how many bytes a call of n bytes takes: allocations grow in steps.
func nameSize(n int) int64 { return (int64(n+uvarintSize(n)) + 15) &^ 15 }
