package wire

import (
	"bytes"
	"errors"
	"fmt"
	"math"

	"rlserver/internal/grammar"
	"rlserver/resp/config"
)

// Redis' limits on what a client may send.
const (
	// bytes in an inline command or the header of a length, without the line end
	maxLine           = 64 << 10
	maxArgsBeforeAuth = 10    // bulk strings in one command, before authentication
	maxBulkBeforeAuth = 16384 // bytes in one bulk string, before authentication
)

// spareBulk is the number of bytes by which a bulk string may exceed the limit of its command. The
// command then refuses it with an error that names the argument, and the connection stays open.
const spareBulk = 1 << 20

// protocolError is a violation of the protocol, with the text of Redis' error.
type protocolError string

// Error returns the text that Redis sends after "-ERR ".
func (e protocolError) Error() string { return "Protocol error: " + string(e) }

const (
	errBigInline      protocolError = "too big inline request"
	errQuotes         protocolError = "unbalanced quotes in request"
	errTLS            protocolError = "TLS on a port without it: connect without TLS, or to tls-port"
	errBigArgsLine    protocolError = "too big mbulk count string"
	errArgsCount      protocolError = "invalid multibulk length"
	errArgsBeforeAuth protocolError = "unauthenticated multibulk length"
	errBigBulkLine    protocolError = "too big bulk count string"
	errBulkLength     protocolError = "invalid bulk length"
	errBulkBeforeAuth protocolError = "unauthenticated bulk length"
)

// errBigQuery ends the stream at a command that is larger than client-query-buffer-limit. As in
// Redis, the client gets no reply.
var errBigQuery = errors.New("command beyond client-query-buffer-limit")

// clientHello is the beginning of a TLS connection: the type of a record and its major version.
var clientHello = []byte{0x16, 0x03}

// framing splits a stream of bytes into commands, by Redis' rules, and the commands into words. The
// package comment shows buf and the indexes.
//
// Bytes that Redis ignores are corrected in place: Redis reads a line up to its CR and skips one
// more byte, and skips two bytes after a bulk string, whatever they are. So the checked part of buf
// is always a valid array.
type framing struct {
	limits        *config.ConnectionLimits
	authenticated bool
	maxBulk       func(name []byte) int64 // see Guard.LimitBulk; may be nil

	buf  []byte
	head int // beginning of the next command
	pos  int // end of its checked part
	scan int // end of the part that has been searched for a line end
	args int // bulk strings that the command at head still lacks; 0 before its header is read
	bulk int // length of the bulk string at pos, or -1 before its header is read

	words   [][]byte // of the last command, and of those after it that Ahead has returned
	begin   int      // where the last command began; -1 if it is not common, or its words are gone
	before  before   // the last command that ahead has returned, or the last one
	refusal error    // the error that ends the stream: a protocolError, or errBigQuery
}

// next returns the words of the next whole command, at least one. It returns nil if the command has
// not arrived in full or the stream is refused. The words are valid until the next call.
func (f *framing) next() [][]byte {
	for f.refusal == nil && f.head < len(f.buf) {
		if words := f.common(); words != nil {
			return words
		}
		switch {
		case f.args > 0:
			if !f.readBulks() {
				return nil
			}
			f.words = splitArray(f.words[:0], f.buf[f.head:f.pos])
			f.take(f.pos)
			return f.words
		case f.buf[f.head] == '*':
			if !f.readArgs() {
				return nil
			}
		default:
			if !f.readInline() {
				return nil
			}
			if len(f.words) > 0 {
				return f.words
			}
		}
	}
	return nil
}

// take moves head to the end of its command.
func (f *framing) take(end int) {
	f.head, f.begin = end, -1
	f.advance(end)
}

func (f *framing) advance(to int) { f.pos, f.scan = to, to }

func (f *framing) refuse(err error) bool {
	f.refusal = err
	return false
}

// readInline splits the line at head into words; a blank line has none. It reports whether the line
// has arrived.
func (f *framing) readInline() bool {
	if bytes.HasPrefix(f.buf[f.head:], clientHello) {
		// otherwise it would wait for a line end that the client does not send
		return f.refuse(errTLS)
	}
	end, ok := f.lineEnd('\n', errBigInline)
	if !ok {
		return false
	}
	line := bytes.TrimSuffix(f.buf[f.head:end], []byte{'\r'})
	if f.words, ok = grammar.Split(f.words[:0], line); !ok {
		return f.refuse(errQuotes)
	}
	f.take(end + 1)
	return true
}

// readArgs reads the header of an array. An array of zero or fewer bulk strings is skipped.
func (f *framing) readArgs() bool {
	n, next, ok := f.header(errBigArgsLine)
	switch {
	case next == 0:
		return false
	case !ok || n > math.MaxInt32:
		return f.refuse(errArgsCount)
	case n > maxArgsBeforeAuth && !f.authenticated:
		return f.refuse(errArgsBeforeAuth)
	case n > max(f.limits.MaxQuery.Load(), config.MinQuery)/int64(WordSize):
		// the array of words alone would be larger
		return f.refuse(errArgsCount)
	case n <= 0:
		f.take(next)
	default:
		f.advance(next)
		f.args = int(n)
	}
	return true
}

// readBulks reads the bulk strings that the command at head still lacks, and reports whether it is
// complete.
func (f *framing) readBulks() bool {
	for ; f.args > 0; f.args-- {
		if f.bulk < 0 && !f.readBulkLength() {
			return false
		}
		if len(f.buf)-f.pos-2 < f.bulk {
			return false
		}
		end := f.pos + f.bulk
		f.buf[end], f.buf[end+1] = '\r', '\n'
		f.advance(end + 2)
		f.bulk = -1
	}
	return true
}

// readBulkLength reads the header of a bulk string.
func (f *framing) readBulkLength() bool {
	n, next, ok := f.header(errBigBulkLine)
	if next == 0 {
		return false
	}
	switch first := f.buf[f.pos]; {
	case first != '$':
		return f.refuse(notABulk(first))
	case !ok || n < 0 || n > f.limits.MaxBulk.Load():
		return f.refuse(errBulkLength)
	case n > maxBulkBeforeAuth && !f.authenticated:
		return f.refuse(errBulkBeforeAuth)
	case n > f.limits.MaxQuery.Load()-int64(next-f.head)-2:
		return f.refuse(errBigQuery)
	case n > spareBulk && f.maxBulk != nil:
		if most := f.maxBulk(f.name()); n-spareBulk > most {
			return f.refuse(bulkTooLarge(most))
		}
	}
	f.advance(next)
	f.bulk = int(n)
	return true
}

// name returns the first word of the command at head, nil if it has not been read.
func (f *framing) name() []byte {
	_, rest := splitHeader(f.buf[f.head:f.pos])
	if len(rest) == 0 {
		return nil
	}
	size, rest := splitHeader(rest)
	return rest[:size]
}

// bulkTooLarge returns the error of a bulk string that is longer than its command accepts.
func bulkTooLarge(most int64) protocolError {
	return protocolError(fmt.Sprintf("invalid bulk length: an argument of this command has at most %d bytes", most))
}

// notABulk returns the error for a byte other than $ at the beginning of a bulk string. As in
// Redis, a line end becomes a space, because it would end the error.
func notABulk(b byte) protocolError {
	if b == '\r' || b == '\n' {
		b = ' '
	}
	return "expected '$', got '" + protocolError([]byte{b}) + "'"
}

// header reads the line at pos as a type byte and a number. next is the index of the following
// line, or 0 if this one has not arrived; ok reports whether the line has a valid number.
func (f *framing) header(tooBig protocolError) (n int64, next int, ok bool) {
	end, ok := f.lineEnd('\r', tooBig)
	if !ok || end+1 == len(f.buf) {
		return 0, 0, false
	}
	f.buf[end+1] = '\n'
	if end > f.pos {
		n, ok = grammar.ParseInt(f.buf[f.pos+1 : end])
	} else {
		ok = false
	}
	return n, end + 2, ok
}

// lineEnd returns the index of the byte that ends the line at pos. A NUL hides the bytes after it,
// as it does from the strchr that Redis searches with: such a line has no end and becomes too big.
func (f *framing) lineEnd(end byte, tooBig protocolError) (int, bool) {
	stop := min(len(f.buf), f.pos+maxLine+1)
	for i, c := range f.buf[f.scan:stop] {
		if c == end {
			return f.scan + i, true
		}
		if c == 0 {
			stop = f.scan + i
			break
		}
	}
	f.scan = stop
	if len(f.buf)-f.pos > maxLine {
		f.refuse(tooBig)
	}
	return 0, false
}
