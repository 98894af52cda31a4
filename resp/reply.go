package resp

import (
	"math"
	"slices"
	"strconv"
)

// reply is where a session's answers are built up, one after the other, until the batch is through. The differences between RESP2 and
// RESP3 live here and nowhere else: handlers say what they mean.
//
// A reply that becomes too large for its client is cut off: what is written from then on is dropped, and the client is closed when
// the call has ended. So a call is carried out in full however large its reply would be.
type reply struct {
	b     []byte
	resp3 bool

	owner replyOwner // whose client the replies are for; nil: any size is right
	check int        // the length at which to ask the owner
	over  bool       // it is cut off
	end   int        // where
}

// replyOwner says how large a reply may become.
type replyOwner interface {
	// mayReply is asked before a reply of a size is written into a buffer of so much room. It returns
	// the size at which it is to be asked again; 0: the reply is too large.
	mayReply(size, room int) (next int)
}

func (r *reply) header(kind byte, n int64) {
	if len(r.b) >= r.check {
		r.fits(0)
	}
	r.b = appendHeader(r.b, kind, n)
}

// fits tells whether n more bytes may be written, and drops what was written after the reply was cut off.
func (r *reply) fits(n int) bool {
	switch {
	case r.owner == nil:
		r.check = math.MaxInt
		return true
	case !r.over:
		if r.check = r.owner.mayReply(len(r.b)+n, cap(r.b)); r.check > 0 {
			return true
		}
		r.over, r.end = true, len(r.b)
	}
	r.b = r.b[:min(len(r.b), r.end)]
	return false
}

// full tells whether n more bytes may not be written.
func (r *reply) full(n int) bool { return len(r.b)+n >= r.check && !r.fits(n) }

func appendHeader(b []byte, kind byte, n int64) []byte {
	b = append(b, kind)
	b = strconv.AppendInt(b, n, 10)
	return append(b, '\r', '\n')
}

// integer answers with a whole number.
func (r *reply) integer(n int64) { r.header(':', n) }

// count answers with a size.
func (r *reply) count(n int) { r.header(':', int64(n)) }

// flag answers 1 or 0.
func (r *reply) flag(yes bool) {
	if yes {
		r.integer(1)
	} else {
		r.integer(0)
	}
}

// status answers with a simple string, which holds no line break.
func (r *reply) status(s string) {
	r.b = append(r.b, '+')
	r.b = append(r.b, s...)
	r.b = append(r.b, '\r', '\n')
}

func (r *reply) ok() { r.status("OK") }

// error answers with an error, whose first word is its code. Line breaks in it become spaces: they would end the reply.
func (r *reply) error(s string) {
	r.b = append(r.b, '-')
	start := len(r.b)
	r.b = append(r.b, s...)
	for i := start; i < len(r.b); i++ {
		if r.b[i] == '\r' || r.b[i] == '\n' {
			r.b[i] = ' '
		}
	}
	r.b = append(r.b, '\r', '\n')
}

// bulk answers with bytes.
func (r *reply) bulk(b []byte) {
	if r.full(len(b)) {
		return
	}
	r.header('$', int64(len(b)))
	r.b = append(r.b, b...)
	r.b = append(r.b, '\r', '\n')
}

func (r *reply) bulkString(s string) {
	if r.full(len(s)) {
		return
	}
	r.header('$', int64(len(s)))
	r.b = append(r.b, s...)
	r.b = append(r.b, '\r', '\n')
}

// bulkInteger answers with a number as bytes.
func (r *reply) bulkInteger(n int64) {
	var buf [20]byte
	r.bulk(strconv.AppendInt(buf[:0], n, 10))
}

// null answers that there is nothing, where a single value was asked for.
func (r *reply) null() {
	if r.resp3 {
		r.b = append(r.b, "_\r\n"...)
	} else {
		r.b = append(r.b, "$-1\r\n"...)
	}
}

// nullArray answers that there is nothing, where several values were asked for.
func (r *reply) nullArray() {
	if r.resp3 {
		r.b = append(r.b, "_\r\n"...)
	} else {
		r.b = append(r.b, "*-1\r\n"...)
	}
}

// double answers with a floating point number: in RESP2 as bytes.
func (r *reply) double(f float64) {
	var buf [32]byte
	r.doubleText(appendFloat(buf[:0], f))
}

// doubleText is double for a number whose text is known.
func (r *reply) doubleText(text []byte) {
	if !r.resp3 {
		r.bulk(text)
		return
	}
	r.b = append(r.b, ',')
	r.b = append(r.b, text...)
	r.b = append(r.b, '\r', '\n')
}

// verbatim answers with text for people: in RESP2 as bytes.
func (r *reply) verbatim(text string) {
	if !r.resp3 {
		r.bulkString(text)
		return
	}
	if r.full(len(text)) {
		return
	}
	r.header('=', int64(len(text)+4))
	r.b = append(r.b, "txt:"...)
	r.b = append(r.b, text...)
	r.b = append(r.b, '\r', '\n')
}

// array begins an answer of n elements, which follow.
func (r *reply) array(n int) { r.header('*', int64(n)) }

// mapping begins an answer of n pairs: in RESP2 an array of twice as many elements.
func (r *reply) mapping(n int) {
	if r.resp3 {
		r.header('%', int64(n))
	} else {
		r.array(2 * n)
	}
}

// set begins an answer of n different elements in no order: in RESP2 an array.
func (r *reply) set(n int) {
	if r.resp3 {
		r.header('~', int64(n))
	} else {
		r.array(n)
	}
}

// later marks the place of an array whose length is known only when its elements have been written: close puts the header there.
func (r *reply) later() (mark int) {
	r.full(0)
	return len(r.b)
}

func (r *reply) close(mark, n int) {
	var buf [24]byte
	r.b = slices.Insert(r.b, mark, appendHeader(buf[:0], '*', int64(n))...)
}
