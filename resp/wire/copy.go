package wire

import (
	"bufio"
	"errors"
	"io"

	"rlserver/internal/grammar"
)

var errNotReply = errors.New("what another node has sent is not a reply")

// Raw appends formatted data, and reports whether it fits.
func (r *Reply) Raw(b []byte) bool {
	if r.full(len(b)) {
		return false
	}
	r.B = append(r.B, b...)
	return true
}

// CopyReply appends the next reply of another node, of any kind, without a change. A reply that is
// too large is truncated and read to its end.
func CopyReply(r *Reply, from *bufio.Reader) error {
	for left := int64(1); left > 0; left-- {
		line, err := from.ReadSlice('\n')
		for err == bufio.ErrBufferFull && line[0] != '$' { // a long error, for example
			r.Raw(line)
			if line, err = from.ReadSlice('\n'); err == nil {
				r.Raw(line)
				line = nil
			}
		}
		if err != nil {
			return err
		}
		if line == nil {
			continue
		}
		if len(line) < 3 {
			return errNotReply
		}
		r.Raw(line)
		kind := line[0]
		switch kind {
		case '+', '-', ':', '_', ',', '#', '(':
			continue
		}
		n, ok := grammar.ParseInt(line[1 : len(line)-2])
		if !ok || n < -1 {
			return errNotReply
		}
		switch kind {
		case '$', '=', '!':
			if n >= 0 {
				err = copyBytes(r, from, n+2)
			}
		case '*', '~', '>':
			left += max(n, 0)
		case '%':
			left += 2 * max(n, 0)
		case '|': // attributes precede their value
			left += 2*max(n, 0) + 1
		default:
			err = errNotReply
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyBytes appends n bytes.
func copyBytes(r *Reply, from *bufio.Reader, n int64) error {
	const step = 64 << 10
	for n > 0 {
		size := int(min(n, step))
		if r.full(size) {
			_, err := io.CopyN(io.Discard, from, n)
			return err
		}
		start := len(r.B)
		r.B = append(r.B, make([]byte, size)...)
		if _, err := io.ReadFull(from, r.B[start:]); err != nil {
			return err
		}
		n -= int64(size)
	}
	return nil
}
