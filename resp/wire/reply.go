package wire

import (
	"bytes"
	"math"
	"rlserver/resp/grammar"
	"slices"
	"strconv"
)

// reply is where a session's answers are built up, one after the other, until the batch is through. The differences between RESP2 and
// RESP3 live here and nowhere else: handlers say what they mean.
//
// A reply that becomes too large for its client is cut off: what is written from then on is dropped, and the client is closed when
// the call has ended. So a call is carried out in full however large its reply would be.
type Reply struct {
	B     []byte
	RESP3 bool

	Limiter     Limiter // whose client the replies are for; nil: any size is right
	NextCheck   int     // the length at which to ask the owner
	Truncated   bool    // it is cut off
	TruncatedAt int     // where
}

// Limiter says how large a reply may become.
type Limiter interface {
	// MayReply is asked before a reply of a size is written into a buffer of so much room. It returns
	// the size at which it is to be asked again; 0: the reply is too large.
	MayReply(size, room int) (next int)
}

func (r *Reply) header(kind byte, n int64) {
	if len(r.B) >= r.NextCheck {
		r.fits(0)
	}
	r.B = AppendHeader(r.B, kind, n)
}

// fits tells whether n more bytes may be written, and drops what was written after the reply was cut off.
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

// full tells whether n more bytes may not be written.
func (r *Reply) full(n int) bool { return len(r.B)+n >= r.NextCheck && !r.fits(n) }

func AppendHeader(b []byte, kind byte, n int64) []byte {
	b = append(b, kind)
	b = strconv.AppendInt(b, n, 10)
	return append(b, '\r', '\n')
}

// integer answers with a whole number.
func (r *Reply) Integer(n int64) { r.header(':', n) }

// count answers with a size.
func (r *Reply) Count(n int) { r.header(':', int64(n)) }

// flag answers 1 or 0.
func (r *Reply) Flag(yes bool) {
	if yes {
		r.Integer(1)
	} else {
		r.Integer(0)
	}
}

// status answers with a simple string, which holds no line break.
func (r *Reply) Status(s string) {
	r.B = append(r.B, '+')
	r.B = append(r.B, s...)
	r.B = append(r.B, '\r', '\n')
}

func (r *Reply) OK() { r.Status("OK") }

// error answers with an error, whose first word is its code. Line breaks in it become spaces: they would end the reply.
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

// bulk answers with bytes.
func (r *Reply) Bulk(b []byte) {
	if r.full(len(b)) {
		return
	}
	r.header('$', int64(len(b)))
	r.B = append(r.B, b...)
	r.B = append(r.B, '\r', '\n')
}

func (r *Reply) BulkString(s string) {
	if r.full(len(s)) {
		return
	}
	r.header('$', int64(len(s)))
	r.B = append(r.B, s...)
	r.B = append(r.B, '\r', '\n')
}

// bulkInteger answers with a number as bytes.
func (r *Reply) BulkInteger(n int64) {
	var buf [20]byte
	r.Bulk(strconv.AppendInt(buf[:0], n, 10))
}

// null answers that there is nothing, where a single value was asked for.
func (r *Reply) Null() {
	if r.RESP3 {
		r.B = append(r.B, "_\r\n"...)
	} else {
		r.B = append(r.B, "$-1\r\n"...)
	}
}

// nullArray answers that there is nothing, where several values were asked for.
func (r *Reply) NullArray() {
	if r.RESP3 {
		r.B = append(r.B, "_\r\n"...)
	} else {
		r.B = append(r.B, "*-1\r\n"...)
	}
}

// double answers with a floating point number: in RESP2 as bytes.
func (r *Reply) Double(f float64) {
	var buf [32]byte
	r.DoubleText(grammar.AppendFloat(buf[:0], f))
}

// doubleText is double for a number whose text is known.
func (r *Reply) DoubleText(text []byte) {
	if !r.RESP3 {
		r.Bulk(text)
		return
	}
	r.B = append(r.B, ',')
	r.B = append(r.B, text...)
	r.B = append(r.B, '\r', '\n')
}

// verbatim answers with text for people: in RESP2 as bytes.
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

// array begins an answer of n elements, which follow.
func (r *Reply) Array(n int) { r.header('*', int64(n)) }

// mapping begins an answer of n pairs: in RESP2 an array of twice as many elements.
func (r *Reply) Mapping(n int) {
	if r.RESP3 {
		r.header('%', int64(n))
	} else {
		r.Array(2 * n)
	}
}

// set begins an answer of n different elements in no order: in RESP2 an array.
func (r *Reply) Set(n int) {
	if r.RESP3 {
		r.header('~', int64(n))
	} else {
		r.Array(n)
	}
}

// later marks the place of an array whose length is known only when its elements have been written: close puts the header there.
func (r *Reply) BeginArray() (mark int) {
	r.full(0)
	return len(r.B)
}

func (r *Reply) EndArray(mark, n int) {
	var buf [24]byte
	r.B = slices.Insert(r.B, mark, AppendHeader(buf[:0], '*', int64(n))...)
}

// integerText answers with a whole number and gives its digits, where they stand in the reply: they hold until that is sent.
func (r *Reply) IntegerText(n int64) []byte {
	r.Integer(n)
	end := len(r.B) - len("\r\n")
	return r.B[bytes.LastIndexByte(r.B[:end], ':')+1 : end]
}

func (r *Reply) BulkOrNull(value []byte, found bool) {
	if found {
		r.Bulk(value)
	} else {
		r.Null()
	}
}
