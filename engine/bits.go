package engine

import (
	"crypto/subtle"
	"encoding/binary"
	"math"
	"math/bits"
)

// Bit 0 of a string is the highest bit of its first byte. What lies behind its end is zeros.

// singles has each byte: the value of an effect that writes one of them is a part of it.
var singles = func() (all [256]byte) {
	for i := range all {
		all[i] = byte(i)
	}
	return all
}()

func single(b byte) []byte { return singles[b : int(b)+1 : int(b)+1] }

// Bit reports whether a bit of a string is set. The offset is not negative.
func Bit(value []byte, offset int64) bool {
	at := offset >> 3
	return at < int64(len(value)) && value[at]&(0x80>>(offset&7)) != 0
}

// SetBit sets or clears a bit of a string, which is stretched as far as that takes, and reports
// whether it was set. A missing key is an empty string. The offset is below 8 * MaxString.
func (tx *Tx) SetBit(k Key, offset int64, on bool) (was bool, err error) {
	o, value, err := tx.stretchable(k, offset>>3+1)
	if err != nil {
		return false, err
	}
	was = Bit(value, offset)
	at := int(offset >> 3)
	if was == on && at < len(value) {
		return was, nil
	}
	var b byte
	if at < len(value) {
		b = value[at]
	}
	b &^= 0x80 >> (offset & 7)
	if on {
		b |= 0x80 >> (offset & 7)
	}
	tx.apply(o, &Effect{Kind: EffectSplice, Key: k, Lo: at, Value: single(b)})
	return was, nil
}

// stretchable finds a string that is to have at least so many bytes, if there is room for them.
func (tx *Tx) stretchable(k Key, length int64) (o object, value []byte, err error) {
	o = tx.lookup(k)
	s, err := as[*stringObject](o)
	if err != nil {
		return o, nil, err
	}
	if s != nil {
		value = s.value
	}
	if !tx.e.roomFor(length - int64(len(value))) {
		return o, nil, ErrOutOfMemory
	}
	return o, value, nil
}

// MayStretch returns why a string cannot have so many bytes.
func (tx *Tx) MayStretch(k Key, length int64) error {
	_, _, err := tx.stretchable(k, length)
	return err
}

// Stretch adds zeros to the end of a string until it has at least so many bytes. A missing key is
// an empty string.
func (tx *Tx) Stretch(k Key, length int64) error {
	o, value, err := tx.stretchable(k, length)
	if err == nil && (o == nil || int64(len(value)) < length) {
		tx.apply(o, &Effect{Kind: EffectSplice, Key: k, Lo: int(length) - 1, Value: single(0)})
	}
	return err
}

// BitField is an integer within a string, its highest bit first.
type BitField struct {
	Offset int64 // of its first bit
	Bits   int   // how many it has: 1 to 64, 63 if it is unsigned
	Signed bool
}

// MaxBitField is how many bytes the fields at the last offsets reach beyond MaxString.
const MaxBitField = 8

// End is how many bytes a string has that ends with the field.
func (f BitField) End() int64 { return (f.Offset+int64(f.Bits)-1)>>3 + 1 }

// In is the integer that is in a string.
func (f BitField) In(value []byte) int64 {
	w := f.window(value)
	shift := f.Offset & 7
	n := binary.BigEndian.Uint64(w[:]) << shift
	n |= uint64(w[8]) >> (8 - shift)
	if f.Signed {
		return int64(n) >> (64 - f.Bits)
	}
	return int64(n >> (64 - f.Bits))
}

// window is the bytes of a string that the field lies in.
func (f BitField) window(value []byte) (w [9]byte) {
	if at := f.Offset >> 3; at < int64(len(value)) {
		copy(w[:], value[at:])
	}
	return w
}

// with is the bytes that the field lies in, once it has another integer.
func (f BitField) with(value []byte, n int64) []byte {
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

// Overflow says what becomes of an integer that does not fit its field.
type Overflow uint8

const (
	OverflowWrap Overflow = iota // its highest bits are left out
	OverflowSat                  // it becomes the greatest that fits, or the least
	OverflowFail                 // the field stays as it is
)

// BitChange changes a field.
type BitChange struct {
	BitField
	N        int64 // the new integer
	Add      bool  // it is added to the old one
	Overflow Overflow
}

// Result is what the change makes of an integer; ok is false if the field stays as it is.
func (c BitChange) Result(old int64) (n int64, ok bool) {
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
		// as Redis: there the distance to the greatest overflows
		return most, true
	}
	return least, true
}

// bounds are the least and the greatest integer that fit.
func (f BitField) bounds() (least, most int64) {
	if f.Signed {
		most = math.MaxInt64 >> (64 - f.Bits)
		return -most - 1, most
	}
	return 0, math.MaxInt64 >> (63 - f.Bits)
}

// ChangeBits changes a field of a string, which MayStretch has allowed to reach as far as the field
// does. It returns what the field held and what the change makes of it; ok is false if it stays as
// it is.
func (tx *Tx) ChangeBits(k Key, c BitChange) (old, now int64, ok bool, err error) {
	o := tx.lookup(k)
	s, err := as[*stringObject](o)
	if err != nil {
		return 0, 0, false, err
	}
	var value []byte
	if s != nil {
		value = s.value
	}
	old = c.In(value)
	if now, ok = c.Result(old); ok && now != old {
		tx.apply(o, &Effect{Kind: EffectSplice, Key: k, Lo: int(c.Offset >> 3), Value: c.with(value, now)})
	}
	return old, now, ok, nil
}

// BitOperation combines strings bit by bit.
type BitOperation uint8

const (
	BitAnd BitOperation = iota
	BitOr
	BitXor
	BitNot // of one string
)

// BitOp stores under a key the result of an operation on strings, in place of what it held, and
// returns how many bytes that has: as many as the longest. If there are none the key is gone. A
// missing key is an empty string.
func (tx *Tx) BitOp(op BitOperation, dst Key, sources []Key) (length int, err error) {
	values := make([][]byte, len(sources))
	for i, k := range sources {
		if values[i], _, err = tx.Get(k); err != nil {
			return 0, err
		}
		length = max(length, len(values[i]))
	}
	if length == 0 {
		tx.Delete(dst)
		return 0, nil
	}
	if !tx.e.roomFor(int64(length)) {
		return 0, ErrOutOfMemory
	}
	result := make([]byte, length)
	copy(result, values[0])
	if op == BitNot {
		for i, b := range result {
			result[i] = ^b
		}
	}
	for _, v := range values[1:] {
		op.combine(result, v)
	}
	tx.Set(dst, result, SetMode{})
	return length, nil
}

// combine has the bits of b, which is no longer than a, change those of a.
func (op BitOperation) combine(a, b []byte) {
	n := len(b)
	switch op {
	case BitXor:
		subtle.XORBytes(a, a[:n], b)
	case BitOr:
		i := 0
		for ; i+8 <= n; i += 8 {
			binary.NativeEndian.PutUint64(a[i:], binary.NativeEndian.Uint64(a[i:])|binary.NativeEndian.Uint64(b[i:]))
		}
		for ; i < n; i++ {
			a[i] |= b[i]
		}
	case BitAnd:
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

// CountBits is how many bits are set from one bit up to but not another; both are within the value
// or at its end.
func CountBits(value []byte, from, to int64) (n int64) {
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

// FindBit is the offset of the first bit that is set, or is not, from one bit up to but not
// another; -1 if there is none. Both are within the value or at its end.
func FindBit(value []byte, set bool, from, to int64) int64 {
	if from >= to {
		return -1
	}
	var flip uint64
	if !set {
		flip = ^uint64(0)
	}
	at, end := from>>3, (to-1)>>3+1
	// the next 8 bytes, or what is left of them, with the bits that are sought set
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
