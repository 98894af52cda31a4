package wire

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unsafe"

	"rlserver/internal/grammar"
)

// common takes the next command if it has the form that nearly all clients send, and returns its
// words. Otherwise it returns nil, and the command is parsed in full. It is called once per
// command, so the work stays linear.
func (f *framing) common() [][]byte {
	words, size := f.commonAt(f.head, f.words[:0])
	if size == 0 {
		return nil
	}
	begin := f.head
	f.take(begin + size)
	f.begin, f.words = begin, words
	return words
}

// commonAt is splitCommon for the command at an index of the buffer, which may be its end.
func (f *framing) commonAt(at int, words [][]byte) (_ [][]byte, size int) {
	if f.scan > f.head || at == len(f.buf) || f.limits.MaxBulk.Load() < shortNumbers {
		return words, 0
	}
	most := shortNumbers
	if !f.authenticated {
		most = maxArgsBeforeAuth
	}
	words, size = splitCommon(words, f.buf[at:], most)
	if int64(size) > f.limits.MaxQuery.Load() {
		return words, 0
	}
	return words, size
}

// ahead returns the words and the size of the command that begins offset bytes after head, without
// taking it: first of the command at head, then of each that follows. All words stay valid until
// next. The size is 0 if the command has not arrived in full or is not of the common form. repeats
// reports whether the words, but for the second, are those of the command before.
func (f *framing) ahead(offset int) (words [][]byte, size int, repeats bool) {
	if offset == 0 {
		f.before = before{}
		if f.begin >= 0 && f.scan == f.head {
			f.before.set(f.buf[f.begin:f.head], f.words)
		}
	}
	at, n := f.head+offset, len(f.words)
	words, size = f.before.split(f.words, f.buf[at:])
	if repeats = size > 0 && int64(size) <= f.limits.MaxQuery.Load(); !repeats {
		if words, size = f.commonAt(at, f.words); size == 0 {
			return nil, 0, false
		}
		f.before.set(f.buf[at:at+size], words[n:])
	}
	f.words = words
	return words[n:len(words):len(words)], size, repeats
}

// before is a command of the common form. In a pipeline the next one is often the same for another
// key: then it is compared, and not split again. The zero value is none.
type before struct {
	words [][]byte
	head  []byte // up to the header of the second word
	tail  []byte // after the second word
}

// set sets the command and its words.
func (c *before) set(b []byte, words [][]byte) {
	if len(words) < 2 {
		*c = before{}
		return
	}
	size := func(n int) int { return len("*\r\n") + digits(n) }
	key := size(len(words)) + size(len(words[0])) + len(words[0]) + len("\r\n")
	c.words, c.head, c.tail = words, b[:key], b[key+size(len(words[1]))+len(words[1]):]
}

// split is splitCommon for a command that has the same words but for the second. The size is 0 if
// it is another.
func (c *before) split(words [][]byte, b []byte) (_ [][]byte, size int) {
	if len(c.words) == 0 || len(b) < len(c.head) || string(b[:len(c.head)]) != string(c.head) {
		return words, 0
	}
	n, begin := digitHeader(b, len(c.head), '$')
	if begin == 0 {
		n, begin = shortHeader(b, len(c.head), '$')
	}
	end := begin + n
	size = end + len(c.tail)
	if begin == 0 || size > len(b) || string(b[end:size]) != string(c.tail) {
		return words, 0
	}
	second := len(words) + 1
	words = append(words, c.words...)
	words[second] = b[begin:end:end]
	return words, size
}

// digits returns the number of digits of a number of at most four.
func digits(n int) int {
	switch {
	case n < 10:
		return 1
	case n < 100:
		return 2
	case n < 1000:
		return 3
	}
	return 4
}

// splitCommon appends the words of the command at the beginning of b and returns its size. The size
// is 0 unless the command is an array of one to maxArgs bulk strings with short lengths and CRLF at
// every line end.
func splitCommon(words [][]byte, b []byte, maxArgs int) (_ [][]byte, size int) {
	args, i := digitHeader(b, 0, '*')
	if i == 0 {
		args, i = shortHeader(b, 0, '*')
	}
	if args == 0 || args > maxArgs {
		return words, 0
	}
	for ; args > 0; args-- {
		size, begin := digitHeader(b, i, '$')
		if begin == 0 {
			size, begin = shortHeader(b, i, '$')
		}
		end := begin + size
		if i = end + 2; begin == 0 || i > len(b) || b[end] != '\r' || b[end+1] != '\n' {
			return words, 0
		}
		words = append(words, b[begin:end:end])
	}
	return words, i
}

// shortNumbers is the limit of short lengths: four digits, within the limit on bulk strings even
// before authentication.
const shortNumbers = 10_000

// shortHeader parses the line at i, of a type byte and a number of one to four digits without
// leading zeros. next is the index of the following line, or 0 if b has anything else at i.
func shortHeader(b []byte, i int, kind byte) (n, next int) {
	if i >= len(b) || b[i] != kind {
		return 0, 0
	}
	if i+5 <= len(b) { // two digits: most keys
		line := binary.LittleEndian.Uint32(b[i+1:]) - ('\n'<<24 | '\r'<<16 | '0'<<8 | '0')
		if tens, ones := line&0xff, line>>8; 1 <= tens && tens <= 9 && ones <= 9 {
			return int(10*tens + ones), i + 5
		}
	}
	first := i + 1
	for i = first; i+1 < len(b) && i <= first+4; i++ {
		digit := b[i] - '0'
		switch {
		case digit <= 9:
			n = n*10 + int(digit)
		case b[i] == '\r' && b[i+1] == '\n' && i > first && (b[first] != '0' || i == first+1):
			return n, i + 2
		default:
			return 0, 0
		}
	}
	return 0, 0
}

// digitHeader is shortHeader for a number of one digit, as nearly all are. Its four bytes are
// compared at once.
func digitHeader(b []byte, i int, kind byte) (n, next int) {
	if i+4 <= len(b) {
		line := binary.LittleEndian.Uint32(b[i:]) - ('\n'<<24 | '\r'<<16 | '0'<<8 | uint32(kind))
		if line <= 9<<8 && byte(line) == 0 {
			return int(line >> 8), i + 4
		}
	}
	return 0, 0
}

// wordsSize returns the size of the list of words in bytes, or 0 if it is not larger than every
// connection may keep.
func (f *framing) wordsSize() int {
	if cap(f.words) <= keptWords {
		return 0
	}
	return cap(f.words) * WordSize
}

// keptWords is the capacity in words that a connection may keep between commands: 4 KB, enough for
// the calls that run together.
const keptWords = 4 << 10 / WordSize

// WordSize is the size of a word in bytes, without the bytes it points to.
const WordSize = int(unsafe.Sizeof([]byte(nil)))

// dropWords drops the references to the buffer of the last words.
func (f *framing) dropWords() {
	if cap(f.words) > keptWords {
		f.words = nil
	}
	clear(f.words[:cap(f.words)])
	f.before = before{}
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

// splitHeader returns the number in the first line of frame, and the bytes after the line.
func splitHeader(frame []byte) (n int, rest []byte) {
	line, rest, _ := bytes.Cut(frame, []byte("\r\n"))
	number, _ := grammar.ParseInt(line[1:])
	return int(number), rest
}
