package dict

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// slots is how many entries a bucket holds: two words of tags.
const slots = 16

// bucket holds the entries of one range of hashes, in no order. For a 16-byte
// entry it takes 288 bytes, a size class of Go's allocator to the byte.
//
// A bucket that is full and may not split grows a chain of buckets at next. In a chain every bucket
// is full except, perhaps, the second: entries are added to it and taken from it to fill holes, so
// both take constant time. Depth and mark are those of the chain's head; the others do not use
// theirs.
type bucket[E any] struct {
	tags  [slots]uint8 // of each entry's hash
	n     uint8
	depth uint8 // how many top bits of the hash all entries share
	// The mark is a signed 48-bit number, so that n, depth and mark take one word.
	markLow  uint16
	markHigh int32
	next     *bucket[E]
	entries  [slots]E
}

// Marks are kept within these bounds. Unset is the mark of an empty bucket, later than every time.
const (
	unset    = 1<<47 - 1
	latest   = unset - 1
	earliest = -1 << 47
)

func newBucket[E any](depth uint8, mark int64) *bucket[E] {
	b := &bucket[E]{depth: depth}
	b.setMark(mark)
	return b
}

func (b *bucket[E]) mark() int64 { return int64(b.markHigh)<<16 | int64(b.markLow) }

func (b *bucket[E]) setMark(at int64) {
	b.markHigh, b.markLow = int32(at>>16), uint16(at)
}

// markOf returns the mark for the time at: at itself, or the nearest time that fits in 48 bits. A
// time in the far future that is rounded down only causes needless visits.
func markOf(at int64) int64 {
	if at == math.MaxInt64 {
		return unset
	}
	return max(earliest, min(at, latest))
}

// find returns the bucket of the chain and the slot in it of the entry with this tag for which is
// returns true; nil if there is none.
func (b *bucket[E]) find(tag uint8, is func(E) bool) (*bucket[E], int) {
	for ; b != nil; b = b.next {
		for half := 0; half < int(b.n); half += 8 {
			m := matches(binary.LittleEndian.Uint64(b.tags[half:half+8]), tag)
			for ; m != 0; m &= m - 1 {
				i := half + first(m)
				if i < int(b.n) && is(b.entries[i]) {
					return b, i
				}
			}
		}
	}
	return nil, 0
}

// tag returns the byte of a hash right below the bits that the directory uses. Lower bits would not
// do: a hash whose top bits have chosen a shard is shifted past them, so its lowest bits are zero.
func tag(hash uint64) uint8 { return uint8(hash >> (64 - maxDepth - 8)) }

// matches sets the top bit of every byte of tags that equals tag. A byte right above a match may be
// set wrongly, so the entry has to be compared.
func matches(tags uint64, tag uint8) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	x := tags ^ ones*uint64(tag)
	return (x - ones) &^ x & tops
}

// first returns the index of the first of 8 bytes whose top bit is set, 8 if there is none.
func first(tops uint64) int { return bits.TrailingZeros64(tops) / 8 }

// put adds an entry, and reports whether the chain grew by a bucket.
func (b *bucket[E]) put(tag uint8, e E) (grew bool) {
	if b.n == slots {
		if grew = b.next == nil || b.next.n == slots; grew {
			b.next = &bucket[E]{next: b.next}
		}
		b = b.next
	}
	b.tags[b.n], b.entries[b.n] = tag, e
	b.n++
	return grew
}

// cut removes the entry at slot i of node, a bucket of the chain with head b, and fills the hole
// with the last entry.
func (b *bucket[E]) cut(node *bucket[E], i int) {
	last := b
	if b.next != nil {
		last = b.next
	}
	last.n--
	node.tags[i], node.entries[i] = last.tags[last.n], last.entries[last.n]
	var none E
	last.entries[last.n] = none
	if last.n == 0 && last != b {
		b.next = last.next
	}
}

// length returns the number of buckets in the chain.
func (b *bucket[E]) length() (n int) {
	for ; b != nil; b = b.next {
		n++
	}
	return n
}
