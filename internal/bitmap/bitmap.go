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

// Combine stores the result of the operation on a and b in a. b is not longer than a, and bits
// behind its end are 0.
func (op Operation) Combine(a, b []byte) {
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
