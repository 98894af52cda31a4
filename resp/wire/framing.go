package wire

import (
	"bytes"
	"errors"
	"math"
	"rlserver/resp/config"
	"rlserver/resp/grammar"
	"slices"
	"sync"
	"unsafe"
)

// Redis' limits on what a client may send.
const (
	maxLine           = 64 << 10 // bytes in an inline command or the header of a length, without the line end
	maxArgsBeforeAuth = 10       // bulk strings in one command, before authentication
	maxBulkBeforeAuth = 16384    // bytes in one bulk string, before authentication
)

// protocolError is a breach of RESP, in the words Redis answers it with.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

const (
	errBigInline      protocolError = "too big inline request"
	errQuotes         protocolError = "unbalanced quotes in request"
	errBigArgsLine    protocolError = "too big mbulk count string"
	errArgsCount      protocolError = "invalid multibulk length"
	errArgsBeforeAuth protocolError = "unauthenticated multibulk length"
	errBigBulkLine    protocolError = "too big bulk count string"
	errBulkLength     protocolError = "invalid bulk length"
	errBulkBeforeAuth protocolError = "unauthenticated bulk length"
)

// errBigQuery ends the stream at a command that would be beyond maxQuery. As in
// Redis, the client gets no answer.
var errBigQuery = errors.New("command beyond client-query-buffer-limit")

// framing finds the commands in a stream of bytes, by Redis' rules, and takes
// them apart into words.
//
//	buf  [ taken | checked | searched | unseen | room to read into ]
//	             ^ head    ^ pos      ^ scan   ^ len(buf)
//
//	head   where the next command begins
//	pos    how far it has been checked
//	scan   how far the line at pos has been searched for its end
//
// None of them ever moves back over a byte, so the work is linear in what
// arrives, even if that is one byte at a time.
//
// What Redis ignores is put right where it stands: Redis reads a line up to
// its CR and skips one byte more, and skips two bytes after a bulk string,
// whatever they are. So what has been checked is an array as the book says.
//
// Two limits of Redis depend on how the bytes were cut up in transit. Here they
// do not: a line is too big with its 65537th byte, even if its end arrived
// together with that; and a command is, as soon as its headers say so.
type framing struct {
	limits        *config.ConnectionLimits
	authenticated bool

	buf  []byte
	head int
	pos  int
	scan int
	args int // bulk strings the command at head still lacks; 0 before its header is read
	bulk int // length of the bulk string at pos, or -1 before its header is read

	words   [][]byte // of the last command, and of those after it that were looked at
	refusal error    // what ends the stream: a protocolError, or errBigQuery
}

// next returns the words of the next whole command, at least one, or nil if
// there is none: it has not arrived, or the stream is refused. They are good
// until the call after.
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

// take says that the command at head ends here.
func (f *framing) take(end int) {
	f.head = end
	f.advance(end)
}

func (f *framing) advance(to int) { f.pos, f.scan = to, to }

func (f *framing) refuse(err error) bool {
	f.refusal = err
	return false
}

// common is the short way for a command such as nearly all clients send. It
// returns nil if there is none: then what is there has to be looked at
// more closely, or has been. One try for each command keeps the work linear.
func (f *framing) common() [][]byte {
	f.words = f.words[:0]
	words, size := f.ahead(0)
	if size > 0 {
		f.take(f.head + size)
	}
	return words
}

// ahead returns the words of the command that begins so many bytes behind the last that was taken, and its size. Nothing is taken by it, and all
// words stay good until next. A command that is not there in full, or is not such as nearly all clients send, has neither.
func (f *framing) ahead(offset int) (words [][]byte, size int) {
	at, before := f.head+offset, len(f.words)
	if f.scan > f.head || at == len(f.buf) || f.limits.MaxBulk.Load() < shortNumbers {
		return nil, 0
	}
	most := shortNumbers
	if !f.authenticated {
		most = maxArgsBeforeAuth
	}
	words, size = splitCommon(f.words, f.buf[at:], most)
	if size == 0 || int64(size) > f.limits.MaxQuery.Load() {
		return nil, 0
	}
	f.words = words
	return words[before:len(words):len(words)], size
}

// splitCommon appends the words of the command that b begins with: an array of
// one to maxArgs bulk strings, all lengths short, each line ended by CR and
// LF. It returns the size of the command, or 0 if that is not what b begins
// with.
func splitCommon(words [][]byte, b []byte, maxArgs int) (_ [][]byte, size int) {
	if b[0] != '*' {
		return words, 0
	}
	args, i := shortNumber(b, 1)
	if args == 0 || args > maxArgs {
		return words, 0
	}
	for n := args; n > 0; n-- {
		if i >= len(b) || b[i] != '$' {
			return words, 0
		}
		size, begin := shortNumber(b, i+1)
		end := begin + size
		if i = end + 2; begin == 0 || i > len(b) || b[end] != '\r' || b[end+1] != '\n' {
			return words, 0
		}
		words = append(words, b[begin:end:end])
	}
	return words, i
}

// shortNumbers are below this: four digits, within the limit on bulk strings
// even before authentication.
const shortNumbers = 10_000

// shortNumber reads one to four digits, the first not a zero unless alone, and
// the line end after them. next is where the following line begins, or 0 if
// anything else is there.
func shortNumber(b []byte, i int) (n, next int) {
	for start := i; i+1 < len(b) && i <= start+4; i++ {
		digit := b[i] - '0'
		switch {
		case digit <= 9:
			n = n*10 + int(digit)
		case b[i] == '\r' && b[i+1] == '\n' && i > start && (b[start] != '0' || i == start+1):
			return n, i + 2
		default:
			return 0, 0
		}
	}
	return 0, 0
}

// readInline splits the line at head; one of nothing but space has no words. It
// reports whether there was a line.
func (f *framing) readInline() bool {
	end, ok := f.lineEnd('\n', errBigInline)
	if !ok {
		return false
	}
	line := bytes.TrimSuffix(f.buf[f.head:end], []byte{'\r'})
	if f.words, ok = splitInline(f.words[:0], line); !ok {
		return f.refuse(errQuotes)
	}
	f.take(end + 1)
	return true
}

// readArgs reads the header of an array. One of no bulk strings, or fewer, is
// passed over.
func (f *framing) readArgs() bool {
	n, next, ok := f.header(errBigArgsLine)
	switch {
	case next == 0:
		return false
	case !ok || n > math.MaxInt32:
		return f.refuse(errArgsCount)
	case n > maxArgsBeforeAuth && !f.authenticated:
		return f.refuse(errArgsBeforeAuth)
	case n > max(f.limits.MaxQuery.Load(), config.MinQuery)/int64(WordSize): // the list of the words alone would take more
		return f.refuse(errArgsCount)
	case n <= 0:
		f.take(next)
	default:
		f.advance(next)
		f.args = int(n)
	}
	return true
}

// readBulks reads the bulk strings the command at head still lacks and
// reports whether that made it whole.
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
	}
	f.advance(next)
	f.bulk = int(n)
	return true
}

// notABulk names the byte that stands where a bulk string should begin. Redis
// lets no line end into an error.
func notABulk(b byte) protocolError {
	if b == '\r' || b == '\n' {
		b = ' '
	}
	return "expected '$', got '" + protocolError([]byte{b}) + "'"
}

// header reads the line at pos as a type byte and a number. next is where the
// following line begins, or 0 if this one is not there yet; ok says whether it
// held a number as Redis writes one.
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

// lineEnd finds the byte that ends the line at pos. A NUL hides what comes
// after it, as it does from the strchr that Redis searches with: such a line
// has no end and at last is too big.
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

// The buffer grows with what has arrived, never by what a length promises.
const (
	restBuffer = 4 << 10  // enough for a client that waits for its replies
	deepBuffer = 16 << 10 // how much is read at a time from one that does not
)

var (
	restBuffers = sync.Pool{New: func() any { return new([restBuffer]byte) }}
	deepBuffers = sync.Pool{New: func() any { return new([deepBuffer]byte) }}
)

// waiting is how many bytes are there and have not been taken.
func (f *framing) waiting() int { return len(f.buf) - f.head }

// add takes in bytes that were read elsewhere.
func (f *framing) add(p []byte) {
	f.grow(len(f.buf) + len(p))
	f.buf = append(f.buf, p...)
}

// room returns space to read into, more of it if the last read filled its
// space. What is read there is then to be added by extend.
func (f *framing) room(deep bool) []byte {
	f.moveToFront()
	f.grow(f.nextSize(deep))
	return f.buf[len(f.buf):cap(f.buf)]
}

// nextSize is how large room makes the buffer. A bulk string that is most of its command is
// given little more than it needs.
func (f *framing) nextSize(deep bool) int {
	switch size := cap(f.buf); {
	case deep && size < deepBuffer:
		return deepBuffer
	case f.waiting() < size:
		return size
	case f.bulk > f.pos-f.head: // else large commands of many words would be copied again and again
		return min(2*size, f.pos-f.head+f.bulk+restBuffer)
	default:
		return 2 * size
	}
}

// unparsed is how many bytes are there and have not been looked at, as far as they are no words of the command at head.
func (f *framing) unparsed() int { return len(f.buf) - f.pos }

// wordsSize is how many bytes the room for words takes, if that is more than any connection keeps.
func (f *framing) wordsSize() int {
	if cap(f.words) <= keptWords {
		return 0
	}
	return cap(f.words) * WordSize
}

func (f *framing) extend(n int) { f.buf = f.buf[:len(f.buf)+n] }

// moveToFront makes use of the space of the commands that were taken, or gives
// it up if it is larger than need be. A command is moved by it at most once:
// after that it is in front.
func (f *framing) moveToFront() {
	if f.head == 0 {
		return
	}
	behind := f.buf[f.head:]
	if len(behind) < restBuffer && cap(f.buf) > deepBuffer {
		f.buf = nil
		f.grow(len(behind))
	}
	f.buf = append(f.buf[:0], behind...)
	f.shift()
}

// shift says that what was at head is now in front.
func (f *framing) shift() {
	f.pos -= f.head
	f.scan -= f.head
	f.head = 0
}

// grow makes the buffer hold at least size bytes.
func (f *framing) grow(size int) {
	old := f.buf
	switch {
	case size <= cap(old):
		return
	case size <= restBuffer:
		f.buf = restBuffers.Get().(*[restBuffer]byte)[:0]
	case size <= deepBuffer:
		f.buf = deepBuffers.Get().(*[deepBuffer]byte)[:0]
	default:
		f.buf = make([]byte, 0, size)
	}
	f.buf = append(f.buf, old...)
	giveBack(old)
}

// release gives up the buffer and all that is in it.
func (f *framing) release() {
	giveBack(f.buf)
	f.buf = nil
	f.head = 0
	f.advance(0)
	f.dropWords()
}

func giveBack(buf []byte) {
	switch cap(buf) {
	case restBuffer:
		restBuffers.Put((*[restBuffer]byte)(buf[:restBuffer]))
	case deepBuffer:
		deepBuffers.Put((*[deepBuffer]byte)(buf[:deepBuffer]))
	}
}

// keptWords is how many words a connection keeps room for between commands, 24 bytes each: 4 KB, enough for mostTogether of them.
const keptWords = 4 << 10 / WordSize

// wordSize is what a word takes beside its bytes.
const WordSize = int(unsafe.Sizeof([]byte(nil)))

// dropWords lets go of the buffer that the last words lie in.
func (f *framing) dropWords() {
	if cap(f.words) > keptWords {
		f.words = nil
	}
	clear(f.words[:cap(f.words)])
}

// splitArray appends the bulk strings of a valid array.
func splitArray(words [][]byte, frame []byte) [][]byte {
	n, frame := splitHeader(frame)
	words = slices.Grow(words, n)
	for range n {
		var size int
		size, frame = splitHeader(frame)
		words, frame = append(words, frame[:size:size]), frame[size+2:]
	}
	return words
}

// splitHeader returns the number in the line that frame begins with, and what
// follows it.
func splitHeader(frame []byte) (n int, rest []byte) {
	line, rest, _ := bytes.Cut(frame, []byte("\r\n"))
	number, _ := grammar.ParseInt(line[1:])
	return int(number), rest
}
