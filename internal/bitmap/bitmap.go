package bitmap

import (
	"crypto/subtle"
	"encoding/binary"
	"math/bits"
)

// singles holds every byte once, so that to write one byte needs no allocation.
var singles = func() (all [256]byte) {
	for i := range all {
		all[i] = byte(i)
	}
	return all
}()

// Single returns a string of one byte, which must not be changed.
func Single(b byte) []byte { return singles[b : int(b)+1 : int(b)+1] }

// Bit reports whether a bit of a string is set. The offset is not negative.
func Bit(value []byte, offset int64) bool {
	at := offset >> 3
	return at < int64(len(value)) && value[at]&(0x80>>(offset&7)) != 0
}

// With returns the byte of a string that has a bit, with the bit set or cleared. It must not be
// changed. The offset is not negative, and may be behind the end.
func With(value []byte, offset int64, on bool) []byte {
	at, mask, b := offset>>3, byte(0x80)>>(offset&7), byte(0)
	if at < int64(len(value)) {
		b = value[at]
	}
	if on {
		return Single(b | mask)
	}
	return Single(b &^ mask)
}

// Count returns how many bits in [from, to) are set. Both are within the value or at its end.
func Count(value []byte, from, to int64) (n int64) {
	if from >= to {
		return 0
	}
	first, last := from>>3, (to-1)>>3
	part := value[first : last+1]
	n -= int64(bits.OnesCount8(part[0] &^ (0xff >> (from & 7))))
	n -= int64(bits.OnesCount8(part[len(part)-1] & (0x7f >> ((to - 1) & 7))))
	for ; len(part) >= 8; part = part[8:] {
		n += int64(bits.OnesCount64(binary.NativeEndian.Uint64(part)))
	}
	for _, b := range part {
		n += int64(bits.OnesCount8(b))
	}
	return n
}

// Find returns the offset of the first bit in [from, to) that is set (or not, if set is false); -1
// if there is none. Both are within the value or at its end.
func Find(value []byte, set bool, from, to int64) int64 {
	if from >= to {
		return -1
	}
	var flip uint64
	if !set {
		flip = ^uint64(0)
	}
	at, end := from>>3, (to-1)>>3+1
	// the next 8 bytes, or one at the end, in which the bits to be found are 1
	word := func() (w uint64, size int64) {
		if at+8 <= end {
			return binary.BigEndian.Uint64(value[at:]) ^ flip, 8
		}
		return uint64(value[at]^byte(flip)) << 56, 1
	}
	w, size := word()
	w &= ^uint64(0) >> (from & 7)
	for w == 0 {
		if at += size; at >= end {
			return -1
		}
		w, size = word()
	}
	if found := at<<3 + int64(bits.LeadingZeros64(w)); found < to {
		return found
	}
	return -1
}

// Operation combines strings bit by bit.
type Operation uint8

const (
	And Operation = iota
	Or
	Xor
	Not // of one string
)

// Apply stores the result of the operation on values in dst, which is zero and as long as the
// longest of them, and returns it. Bits behind the end of a value are 0.
func (op Operation) Apply(dst []byte, values [][]byte) []byte {
	copy(dst, values[0])
	if op == Not {
		for i, b := range dst {
			dst[i] = ^b
		}
	}
	for _, v := range values[1:] {
		op.combine(dst, v)
	}
	return dst
}

// combine stores the result of the operation on a and b in a. b is not longer than a, and bits
// behind its end are 0.
func (op Operation) combine(a, b []byte) {
	n := len(b)
	switch op {
	case Xor:
		subtle.XORBytes(a, a[:n], b)
	case Or:
		i := 0
		for ; i+8 <= n; i += 8 {
			binary.NativeEndian.PutUint64(a[i:], binary.NativeEndian.Uint64(a[i:])|binary.NativeEndian.Uint64(b[i:]))
		}
		for ; i < n; i++ {
			a[i] |= b[i]
		}
	case And:
		i := 0
		for ; i+8 <= n; i += 8 {
			binary.NativeEndian.PutUint64(a[i:], binary.NativeEndian.Uint64(a[i:])&binary.NativeEndian.Uint64(b[i:]))
		}
		for ; i < n; i++ {
			a[i] &= b[i]
		}
		clear(a[n:])
	}
}
