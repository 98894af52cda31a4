package reserve

import (
	"iter"
	"math/bits"
	"unsafe"
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
	pages []page
	n     uint32 // nodes
	root  ref
	index *index // nil for a few nodes
	text  int64  // bytes of the calls, with their lengths
}

// New returns an empty book.
func New() *Book { return new(Book) }

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
	if x := b.find(call, sum(call)); x != 0 {
		return b.reservation(x), true
	}
	return r, false
}

// Has reports whether there is a reservation of a call.
func (b *Book) Has(call []byte) bool {
	_, ok := b.Find(call)
	return ok
}

// Put adds a reservation, in place of that of the same call. It copies the call.
func (b *Book) Put(r Reservation) {
	hash := sum(r.Call)
	x := b.find(r.Call, hash)
	if x == 0 {
		x = b.add(r, hash)
		b.text += nameSize(len(r.Call))
		b.enlist(x)
	} else {
		b.take(x)
		n := b.edit(x)
		n.until, n.amount = r.Until, r.Amount
	}
	b.place(x)
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
func (b *Book) Open(now int64) int64 { return int64(b.Len() - b.Over(now)) }

// Last returns when the last reservation is over, Unix ms; ok is false if there is none.
func (b *Book) Last() (at int64, ok bool) {
	if b.Len() == 0 {
		return 0, false
	}
	_, x := b.last(b.root)
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
	if b.index != nil {
		b.index.shared = true
	}
	c.pages = append([]page(nil), b.pages...)
	return &c
}

// Weight returns how many bytes the book takes. It depends only on the reservations.
func (b *Book) Weight() int64 {
	if b == nil {
		return 0
	}
	n := int64(b.n)
	pages := (n + pageNodes - 1) / pageNodes
	nodes := pages * pageNodes
	if pages == 1 { // it grows by doubling
		nodes = 1 << bits.Len64(uint64(n-1))
	}
	return int64(unsafe.Sizeof(*b)) + pages*pageSize + nodes*nodeSize + n*indexed + b.text
}

const (
	pageSize = int64(unsafe.Sizeof(page{}) + 8) // as allocated
	nodeSize = int64(unsafe.Sizeof(node{}))
	indexed  = 4 // what a reservation takes of the index, and of what the text has in reserve
)
