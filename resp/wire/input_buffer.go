package wire

import (
	"sync"
)

// The buffer grows with what has arrived, never by what a length promises.
const (
	restBuffer = 4 << 10  // bytes; enough for a client that waits for its replies
	deepBuffer = 16 << 10 // bytes; for a client that sends a pipeline
)

var (
	restBuffers = sync.Pool{New: func() any { return new([restBuffer]byte) }}
	deepBuffers = sync.Pool{New: func() any { return new([deepBuffer]byte) }}
)

// waiting returns how many bytes of the input have not been taken.
func (f *framing) waiting() int { return len(f.buf) - f.head }

// add appends bytes that were read into another buffer.
func (f *framing) add(p []byte) {
	f.grow(len(f.buf) + len(p))
	f.buf = append(f.buf, p...)
}

// room returns free space to read into; deep asks for more, because the last read filled its space.
// The caller then calls extend with the number of bytes read.
func (f *framing) room(deep bool) []byte {
	f.moveToFront()
	f.grow(f.nextSize(deep))
	return f.buf[len(f.buf):cap(f.buf)]
}

// nextSize returns the capacity that room gives the buffer, in bytes. A bulk string that is most of
// its command gets little more than it needs.
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

// unparsed returns how many bytes of the input have not been checked.
func (f *framing) unparsed() int { return len(f.buf) - f.pos }

// extend adds n bytes that were read into room.
func (f *framing) extend(n int) { f.buf = f.buf[:len(f.buf)+n] }

// moveToFront reclaims the space of the commands that were taken, or drops the buffer if it is
// larger than necessary. It moves a command at most once.
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

// shift moves the indices after the bytes at head were moved to the front.
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

// release drops the buffer and all that is in it.
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
