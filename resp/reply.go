package resp

import (
	"slices"
	"strconv"
)

// reply is where a session's answers are built up, one after the other, until the batch is through. The differences between RESP2 and
// RESP3 live here and nowhere else: handlers say what they mean.
type reply struct {
	b     []byte
	resp3 bool
}

func (r *reply) header(kind byte, n int64) { r.b = appendHeader(r.b, kind, n) }

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
	r.header('$', int64(len(b)))
	r.b = append(r.b, b...)
	r.b = append(r.b, '\r', '\n')
}

func (r *reply) bulkString(s string) {
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
func (r *reply) later() (mark int) { return len(r.b) }

func (r *reply) close(mark, n int) {
	var buf [24]byte
	r.b = slices.Insert(r.b, mark, appendHeader(buf[:0], '*', int64(n))...)
}
