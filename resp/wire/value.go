package wire

import (
	"bytes"
	"strconv"
)

// Value is a reply as a value. The replies of several partitions are merged as values.
type Value struct {
	Kind    byte   // the first byte of the encoded reply: '-' for an error; 0: there is no reply
	Integer int64  // of an integer, or the number of elements of an array
	Text    []byte // of any other reply; of an array its elements, encoded
	encoded []byte
}

// ParseValue returns the value of one reply, which must be whole; of an empty one the zero value.
// The value refers to the reply.
func ParseValue(reply []byte) (v Value) {
	head, rest, found := bytes.Cut(reply, []byte("\r\n"))
	if !found || len(head) == 0 {
		return v
	}
	v = Value{Kind: head[0], Text: head[1:], encoded: reply}
	switch v.Kind {
	case ':', '*', '$':
		v.Integer, _ = strconv.ParseInt(string(head[1:]), 10, 64)
	}
	switch v.Kind {
	case '*':
		v.Text = rest
	case '$':
		v.Text = bytes.TrimSuffix(rest, []byte("\r\n"))
	}
	return v
}

// Failed reports whether there is no reply, or an error.
func (v *Value) Failed() bool { return v.Kind == 0 || v.Kind == '-' }

// Elements returns the elements of an array.
func (v *Value) Elements() (list []Value) {
	for rest := v.Text; len(rest) > 0; {
		next := afterReply(rest)
		list = append(list, ParseValue(rest[:len(rest)-len(next)]))
		rest = next
	}
	return list
}

// Value appends a value.
func (r *Reply) Value(v Value) { r.B = append(r.B, v.encoded...) }
