package wire

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"rlserver/internal/grammar"
)

// Reply is the buffer of a session's replies to the current batch. It has one method per kind of
// reply, which appends it in RESP2 or RESP3: handlers need not know the difference.
//
// A reply that is too large for its client is truncated: further writes are dropped, and the client
// is closed when the call has ended. So a call always runs in full.
type Reply struct {
	B     []byte // the replies
	RESP3 bool

	Limiter     Limiter // decides how large a reply may become; nil: no limit
	NextCheck   int     // the length at which Limiter is called again
	Truncated   bool
	TruncatedAt int // the length at which the reply was truncated
}

// Limiter decides how large a reply may become.
type Limiter interface {
	// MayReply is called before a reply grows to size bytes in a buffer of capacity bytes. It
	// returns the size at which it must be called again, or 0 if the reply is too large.
	MayReply(size, capacity int) (next int)
}

// header appends a type byte, a number and a line end.
func (r *Reply) header(kind byte, n int64) {
	if len(r.B) >= r.NextCheck {
		r.fits(0)
	}
	r.B = AppendHeader(r.B, kind, n)
}

// fits reports whether n more bytes may be written. After a truncation it drops the bytes that
// follow it.
func (r *Reply) fits(n int) bool {
	switch {
	case r.Limiter == nil:
		r.NextCheck = math.MaxInt
		return true
	case !r.Truncated:
		if r.NextCheck = r.Limiter.MayReply(len(r.B)+n, cap(r.B)); r.NextCheck > 0 {
			return true
		}
		r.Truncated, r.TruncatedAt = true, len(r.B)
	}
	r.B = r.B[:min(len(r.B), r.TruncatedAt)]
	return false
}

// full reports whether there is no space for n more bytes.
func (r *Reply) full(n int) bool { return len(r.B)+n >= r.NextCheck && !r.fits(n) }

// AppendHeader appends the header of a reply: a type byte, a number and a line end.
func AppendHeader(b []byte, kind byte, n int64) []byte {
	size := len(b)
	b = slices.Grow(b, maxHeader)[:size+maxHeader]
	return b[:size+putHeader((*[maxHeader]byte)(b[size:]), kind, n)]
}

// maxHeader is the most bytes of a header: a type byte, a sign, 19 digits and a line end.
const maxHeader = 23

// short has the headers of the numbers below 1000 but for their type, which is the first byte. The
// last byte is the size of the header.
var short = func() (list [1000]uint64) {
	for n := range list {
		text := append(strconv.AppendInt([]byte{0}, int64(n), 10), '\r', '\n')
		size := len(text)
		text = append(text, make([]byte, 8-size)...)
		text[7] = byte(size)
		list[n] = binary.LittleEndian.Uint64(text)
	}
	return list
}()

// putHeader writes a header, and returns its length.
func putHeader(b *[maxHeader]byte, kind byte, n int64) (size int) {
	switch {
	case uint64(n) < uint64(len(short)):
		binary.LittleEndian.PutUint64(b[:], short[n]|uint64(kind))
		return int(short[n] >> 56)
	case uint64(n) > 99999:
		size = len(strconv.AppendInt(b[:1], n, 10))
		b[0], b[size], b[size+1] = kind, '\r', '\n'
		return size + 2
	}
	// Up to five digits and the rest are eight bytes, which are put together from the last one on.
	text, rest := uint64('\n')<<8|'\r', uint32(n)
	for size = 4; rest > 9; size++ {
		text, rest = text<<8|uint64('0'+rest%10), rest/10
	}
	binary.LittleEndian.PutUint64(b[:], (text<<8|uint64('0'+rest))<<8|uint64(kind))
	return size
}

// Integers appends an array of fewer than 1000 integers.
func (r *Reply) Integers(list []int64) {
	if len(r.B) >= r.NextCheck {
		r.fits(0)
	}
	b := appendShort(slices.Grow(r.B, maxHeader*(1+len(list))), '*', int64(len(list)))
	for _, n := range list {
		if uint64(n) < uint64(len(short)) {
			b = appendShort(b, ':', n)
		} else {
			b = AppendHeader(b, ':', n)
		}
	}
	r.B = b
}

// appendShort is AppendHeader for a number below 1000, as most of a decision are. It is inlined.
func appendShort(b []byte, kind byte, n int64) []byte {
	header := short[n] | uint64(kind)
	b = binary.LittleEndian.AppendUint64(b, header)
	return b[:len(b)-8+int(header>>56)]
}

// Integer appends an integer.
func (r *Reply) Integer(n int64) { r.header(':', n) }

// Count appends an integer that is a size.
func (r *Reply) Count(n int) { r.header(':', int64(n)) }

// Flag appends 1 for true and 0 for false.
func (r *Reply) Flag(yes bool) {
	if yes {
		r.Integer(1)
	} else {
		r.Integer(0)
	}
}

// Status appends a simple string, which must not contain a line end.
func (r *Reply) Status(s string) {
	r.B = append(r.B, '+')
	r.B = append(r.B, s...)
	r.B = append(r.B, '\r', '\n')
}

// OK appends the simple string OK.
func (r *Reply) OK() { r.Status("OK") }

// Error appends an error, whose first word is its code. Line ends in it become spaces, because they
// would end the reply.
func (r *Reply) Error(s string) {
	r.B = append(r.B, '-')
	start := len(r.B)
	r.B = append(r.B, s...)
	for i := start; i < len(r.B); i++ {
		if r.B[i] == '\r' || r.B[i] == '\n' {
			r.B[i] = ' '
		}
	}
	r.B = append(r.B, '\r', '\n')
}

// Bulk appends a bulk string. b is copied.
func (r *Reply) Bulk(b []byte) {
	if r.full(len(b)) {
		return
	}
	r.header('$', int64(len(b)))
	r.B = append(r.B, b...)
	r.B = append(r.B, '\r', '\n')
}

// BulkString appends a bulk string.
func (r *Reply) BulkString(s string) {
	if r.full(len(s)) {
		return
	}
	r.header('$', int64(len(s)))
	r.B = append(r.B, s...)
	r.B = append(r.B, '\r', '\n')
}

// BulkInteger appends a number as a bulk string.
func (r *Reply) BulkInteger(n int64) {
	var buf [20]byte
	r.Bulk(strconv.AppendInt(buf[:0], n, 10))
}

// Null appends the null of a single value.
func (r *Reply) Null() {
	if r.RESP3 {
		r.B = append(r.B, "_\r\n"...)
	} else {
		r.B = append(r.B, "$-1\r\n"...)
	}
}

// NullArray appends the null of an array.
func (r *Reply) NullArray() {
	if r.RESP3 {
		r.B = append(r.B, "_\r\n"...)
	} else {
		r.B = append(r.B, "*-1\r\n"...)
	}
}

// Double appends a double, in RESP2 as a bulk string.
func (r *Reply) Double(f float64) {
	var buf [32]byte
	r.DoubleText(grammar.AppendFloat(buf[:0], f))
}

// DoubleText appends a double that is already formatted.
func (r *Reply) DoubleText(text []byte) {
	if !r.RESP3 {
		r.Bulk(text)
		return
	}
	r.B = append(r.B, ',')
	r.B = append(r.B, text...)
	r.B = append(r.B, '\r', '\n')
}

// Verbatim appends text for humans, in RESP2 as a bulk string.
func (r *Reply) Verbatim(text string) {
	if !r.RESP3 {
		r.BulkString(text)
		return
	}
	if r.full(len(text)) {
		return
	}
	r.header('=', int64(len(text)+4))
	r.B = append(r.B, "txt:"...)
	r.B = append(r.B, text...)
	r.B = append(r.B, '\r', '\n')
}

// Boolean appends true or false, in RESP2 as 1 or 0.
func (r *Reply) Boolean(yes bool) {
	switch {
	case !r.RESP3:
		r.Flag(yes)
	case yes:
		r.B = append(r.B, "#t\r\n"...)
	default:
		r.B = append(r.B, "#f\r\n"...)
	}
}

// BigNumber appends a number of any size, in RESP2 as a bulk string.
func (r *Reply) BigNumber(digits string) {
	if !r.RESP3 {
		r.BulkString(digits)
		return
	}
	r.B = append(r.B, '(')
	r.B = append(r.B, digits...)
	r.B = append(r.B, '\r', '\n')
}

// VerbatimAs appends text with a format of three letters, in RESP2 as a bulk string.
func (r *Reply) VerbatimAs(format, text string) {
	if !r.RESP3 {
		r.BulkString(text)
		return
	}
	if r.full(len(text)) {
		return
	}
	r.header('=', int64(len(text)+4))
	r.B = append(r.B, format...)
	r.B = append(r.B, ':')
	r.B = append(r.B, text...)
	r.B = append(r.B, '\r', '\n')
}

// Array begins an array. The caller appends its n elements.
func (r *Reply) Array(n int) { r.header('*', int64(n)) }

// Push begins a push of n elements, in RESP2 an array. The caller appends them.
func (r *Reply) Push(n int) {
	if r.RESP3 {
		r.header('>', int64(n))
	} else {
		r.Array(n)
	}
}

// Mapping begins a map of n pairs, in RESP2 an array of 2n elements. The caller appends them.
func (r *Reply) Mapping(n int) {
	if r.RESP3 {
		r.header('%', int64(n))
	} else {
		r.Array(2 * n)
	}
}

// Set begins a set of n elements, in RESP2 an array. The caller appends them.
func (r *Reply) Set(n int) {
	if r.RESP3 {
		r.header('~', int64(n))
	} else {
		r.Array(n)
	}
}

// BeginArray begins an array whose length is only known after its elements are appended. Pass mark
// and the length to EndArray.
func (r *Reply) BeginArray() (mark int) {
	r.full(0)
	return len(r.B)
}

// EndArray inserts the header of an array of n elements that began at mark.
func (r *Reply) EndArray(mark, n int) {
	var buf [24]byte
	r.B = slices.Insert(r.B, mark, AppendHeader(buf[:0], '*', int64(n))...)
}

// BulkOrNull appends a bulk string if found, else a null.
func (r *Reply) BulkOrNull(value []byte, found bool) {
	if found {
		r.Bulk(value)
	} else {
		r.Null()
	}
}
