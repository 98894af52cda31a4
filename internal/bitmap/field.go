package bitmap

import (
	"encoding/binary"
	"math"
)

// Field is an integer within a string, its highest bit first.
type Field struct {
	Offset int64 // of its first bit
	Bits   int   // how many bits it has: 1 to 64, or to 63 if it is unsigned
	Signed bool
}

// End returns the length in bytes of a string that ends with the field.
func (f Field) End() int64 { return (f.Offset+int64(f.Bits)-1)>>3 + 1 }

// In returns the field's integer in a string.
func (f Field) In(value []byte) int64 {
	w := f.window(value)
	shift := f.Offset & 7
	n := binary.BigEndian.Uint64(w[:]) << shift
	n |= uint64(w[8]) >> (8 - shift)
	if f.Signed {
		return int64(n) >> (64 - f.Bits)
	}
	return int64(n >> (64 - f.Bits))
}

// window returns the bytes of a string that contain the field.
func (f Field) window(value []byte) (w [9]byte) {
	if at := f.Offset >> 3; at < int64(len(value)) {
		copy(w[:], value[at:])
	}
	return w
}

// With returns the bytes that contain the field after it is set to n.
func (f Field) With(value []byte, n int64) []byte {
	w := f.window(value)
	shift := f.Offset & 7
	mask := ^uint64(0) << (64 - f.Bits)
	v := uint64(n) << (64 - f.Bits)
	high := binary.BigEndian.Uint64(w[:])
	binary.BigEndian.PutUint64(w[:], high&^(mask>>shift)|v>>shift)
	if shift > 0 {
		w[8] = w[8]&^byte(mask<<(64-shift)>>56) | byte(v<<(64-shift)>>56)
	}
	return w[:f.End()-f.Offset>>3]
}

// bounds returns the least and the greatest integer that fit.
func (f Field) bounds() (least, most int64) {
	if f.Signed {
		most = math.MaxInt64 >> (64 - f.Bits)
		return -most - 1, most
	}
	return 0, math.MaxInt64 >> (63 - f.Bits)
}

// MaxField is how many bytes a field can reach beyond the longest string.
const MaxField = 8

// Overflow is the handling of an integer that does not fit its field.
type Overflow uint8

const (
	OverflowWrap Overflow = iota // the highest bits are dropped
	OverflowSat                  // saturate: the greatest or the least integer that fits
	OverflowFail                 // the field stays as it is
)

// Change changes a field.
type Change struct {
	Field
	N        int64 // the new integer
	Add      bool  // it is added to the old one
	Overflow Overflow
}

// Result returns the new integer of a field that has the old one; ok is false if the field keeps
// its value.
func (c Change) Result(old int64) (n int64, ok bool) {
	n = c.N
	above, below := false, false
	if c.Add {
		n += old
		above, below = c.N > 0 && n < old, c.N < 0 && n > old
	}
	least, most := c.bounds()
	switch {
	case !above && !below && least <= n && n <= most:
		return n, true
	case c.Overflow == OverflowFail:
		return 0, false
	case c.Overflow == OverflowWrap && c.Signed:
		return n << (64 - c.Bits) >> (64 - c.Bits), true
	case c.Overflow == OverflowWrap:
		return n & most, true
	case above || !below && n > most:
		return most, true
	case !c.Add && (!c.Signed || n < most-math.MaxInt64):
		// as in Redis, where the distance to the greatest integer overflows
		return most, true
	}
	return least, true
}
