package object

import (
	"bytes"
	"math"
	"strconv"
	"unsafe"

	"rlserver/internal/largecopy"
	"rlserver/internal/rdb"
)

// MaxString is the longest string that APPEND and SETRANGE can build, in bytes.
const MaxString = 512 << 20

// Up to these sizes an object is converted to effects at once, under its shard's lock.
const (
	SmallCount = 128 // elements of a collection
	SmallBytes = 4 << 10
)

// Limits of Redis' encodings.
const (
	embstrSize    = 44
	sharedNumbers = 10000
)

// String is a string.
type String struct {
	Header
	Value []byte
	Clock
	// a snapshot or a reply may be reading Value: copy it before overwriting bytes
	shared bool
	// a Splice has changed a part of it: Redis then keeps it as raw bytes, until it is set again
	Raw bool
}

// NewString returns an empty string.
func NewString(name []byte) *String {
	o, text := withName[String](name)
	o.name = text
	return o
}

// Put sets the value to a copy. It does not overwrite the old value, which a caller may still be
// reading.
func (o *String) Put(value []byte) { o.Value, o.shared, o.Raw = largecopy.Clone(value), false, false }

// Splice overwrites the bytes from an offset on. A gap before them is filled with zeros. It makes
// the string Raw, unless it overwrites all of it.
func (o *String) Splice(at int, value []byte) {
	if at > 0 || len(value) == 0 || len(value) != len(o.Value) {
		o.Raw = true
	}
	if o.shared && at < len(o.Value) {
		o.Value, o.shared = largecopy.Clone(o.Value), false
	}
	if end := at + len(value); end > len(o.Value) {
		o.Value = append(o.Value, make([]byte, end-len(o.Value))...)
	}
	copy(o.Value[at:], value)
}

func (o *String) Content(c *Content) {
	text := o.Share()
	c.Append, c.Lasting = func(b []byte) []byte { return rdb.AppendString(b, text) }, true
}

func (o *String) digest(d *Digest) {
	d.MixNumber(digestString)
	d.Mix(o.Value)
}

func (o *String) Encoding(Packing) string {
	if _, ok := o.number(); ok {
		return "int"
	}
	if len(o.Value) <= embstrSize && !o.Raw {
		return "embstr"
	}
	return "raw"
}

// number returns the 64-bit integer that a string represents in canonical form, if Redis stores it
// as one.
func (o *String) number() (n int64, ok bool) {
	var buf [20]byte
	if o.Raw || len(o.Value) > len(buf) {
		return 0, false
	}
	n, err := strconv.ParseInt(string(o.Value), 10, 64)
	return n, err == nil && string(strconv.AppendInt(buf[:0], n, 10)) == string(o.Value)
}

// References returns the reference count of Redis: math.MaxInt32 for small integers, which Redis
// shares among keys.
func (o *String) References() int64 {
	if n, ok := o.number(); ok && 0 <= n && n < sharedNumbers {
		return math.MaxInt32
	}
	return 1
}

func (o *String) Weight() int64 {
	return int64(unsafe.Sizeof(*o)) + int64(allocated(cap(o.Value)))
}

func (*String) Kind() Type { return TypeString }

func (o *String) Clone(name string) Object {
	return &String{
		Header: Header{name, o.ExpireAt}, Value: append([]byte(nil), o.Value...), Clock: o.Clock, Raw: o.Raw,
	}
}

// A long value is encoded later. The next change copies it if it would overwrite it.
func (o *String) save(b *Batch) (whole bool) {
	if !b.isLarge(1, len(o.Value)) {
		b.putString(o.Value, o.ExpireAt)
		return true
	}
	value, expireAt := o.Share(), o.ExpireAt
	b.postpone(0, func(b *Batch) (more bool) {
		b.putString(value, expireAt)
		return false
	})
	return false
}

// Share returns the value: a copy if it is short, otherwise itself, which the string's next change
// copies before it writes.
func (o *String) Share() []byte {
	if len(o.Value) <= SmallBytes {
		return bytes.Clone(o.Value)
	}
	o.shared = true
	return o.Value
}
