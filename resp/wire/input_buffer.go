package wire

import (
	"sync"

	"rlserver/internal/largecopy"
)

// The buffer grows with the input that has arrived, never by an announced length.
const (
	restBuffer = 4 << 10  // bytes; enough for a client that waits for its replies
	deepBuffer = 16 << 10 // bytes; for a client that sends a pipeline
)

var (
	restBuffers = sync.Pool{New: func() any { return new([restBuffer]byte) }}
	deepBuffers = sync.Pool{New: func() any { return new([deepBuffer]byte) }}
)

// waiting returns the number of bytes of input that have not been taken.
func (f *framing) waiting() int { return len(f.buf) - f.head }

// add appends bytes that were read into another buffer.
func (f *framing) add(p []byte) {
	f.begin = -1
	f.grow(len(f.buf) + len(p))
	f.buf = append(f.buf, p...)
}

// freeSpace returns free space to read into. deep asks for more, because the last read filled its
// buffer. The caller then calls extend with the number of bytes read.
func (f *framing) freeSpace(deep bool) []byte {
	f.moveToFront()
	f.grow(f.nextSize(deep))
	return f.buf[len(f.buf):cap(f.buf)]
}

// nextSize returns the capacity that freeSpace gives the buffer, in bytes. For a bulk string that
// is most of its command it is little more than that needs.
func (f *framing) nextSize(deep bool) int {
	switch size := cap(f.buf); {
	case deep && size < deepBuffer:
		return deepBuffer
	case f.waiting() < size:
		return size
	case f.bulk > f.pos-f.head: // otherwise large commands of many words would be copied repeatedly
		return min(2*size, f.pos-f.head+f.bulk+restBuffer)
	default:
		return 2 * size
	}
}

// unparsed returns the number of bytes of input that have not been checked.
func (f *framing) unparsed() int { return len(f.buf) - f.pos }

// extend adds n bytes that were read into freeSpace.
func (f *framing) extend(n int) { f.buf = f.buf[:len(f.buf)+n] }

// moveToFront reclaims the space of commands that were taken, or drops the buffer if it is larger
// than necessary. It moves a command at most once.
func (f *framing) moveToFront() {
	f.begin = -1
	if f.head == 0 {
		return
	}
	rest := f.buf[f.head:]
	if len(rest) < restBuffer && cap(f.buf) > deepBuffer {
		f.buf = nil
		f.grow(len(rest))
	}
	f.buf = append(f.buf[:0], rest...)
	f.pos, f.scan, f.head = f.pos-f.head, f.scan-f.head, 0
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
	f.buf = largecopy.Append(f.buf, old)
	putBuffer(old)
}

// release drops the buffer and its content.
func (f *framing) release() {
	putBuffer(f.buf)
	f.buf = nil
	f.head, f.begin = 0, -1
	f.advance(0)
	f.dropWords()
}

func putBuffer(buf []byte) {
	switch cap(buf) {
	case restBuffer:
		restBuffers.Put((*[restBuffer]byte)(buf[:restBuffer]))
	case deepBuffer:
		deepBuffers.Put((*[deepBuffer]byte)(buf[:deepBuffer]))
	}
}
