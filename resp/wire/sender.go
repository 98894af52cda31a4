package wire

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"rlserver/resp/clientmem"
)

const (
	// bytes that the pump sends at a time; a client that reads that many within its timeout is not
	// idle
	pumped     = 64 << 10
	atOnce     = 256 << 10 // bytes of one system call, which occupies a processor
	replyChunk = 16 << 10  // minimum size of a chunk of the queue in bytes
)

var (
	errUnreadReplies = errors.New("the client leaves more replies unread than client-output-buffer-limit allows")
	errEvicted       = errors.New("the client was evicted for the memory it holds")
)

// sender writes replies, encrypted if the client speaks TLS, to the socket. A client may send a
// pipeline before it reads the first reply: so replies that the socket does not accept at once are
// queued and sent by a goroutine, the pump, while the connection's goroutine continues to read.
// While the client keeps up there is neither queue nor pump. When the queue is long, the client's
// commands wait. A client that then does not read, or exceeds the hard limit, is closed.
//
// Guard.writing protects all fields. It is not held while a write blocks.
type sender struct {
	raw     syscall.RawConn       // nil if the connection is not a socket: then sending blocks
	secured bool                  // it hides its socket, as TLS does: the pump sends all
	try     func(fd uintptr) bool // trySend, bound once to avoid an allocation
	piece   []byte                // the input of trySend
	sent    int                   // bytes of piece that were written
	failed  error                 // the error of trySend
	queue   []unsent              // not sent yet
	size    int64                 // memory of the queue in bytes
	pumping bool                  // the pump runs
	taken   sync.Cond             // the pump has sent a chunk, or ended
	err     error                 // why sending has ended
	timed   bool                  // a write deadline is set
	closing bool                  // finish waits
	paused  *time.Timer           // closes the client if the queue stays too long

	// Pushes, see push.go.
	holding  bool
	held     [][]byte
	heldSize int64 // memory of held in bytes
}

// unsent is a part of the queue.
type unsent struct {
	bytes []byte
	sent  int // number of bytes that were sent
}

// wait waits until the queue is short enough for more commands to run. It returns an error if
// sending has ended.
func (s *sender) wait(g *Guard) error {
	for s.err == nil && s.size > g.pauseAt() {
		s.taken.Wait()
	}
	return s.err
}

// offer sends or queues p without waiting, and returns the number of bytes that were sent. If keep
// is true, the sender owns p from then on.
func (s *sender) offer(g *Guard, p []byte, keep bool) (n int) {
	if s.err == nil && !s.pumping && !s.secured {
		n, s.err = s.sendNow(g, p)
		g.BytesOut.Add(int64(n))
	}
	if s.err == nil && n < len(p) {
		s.enqueue(g, p, n, keep)
	}
	return n
}

// enqueue queues p without its first n bytes for the pump.
func (s *sender) enqueue(g *Guard, p []byte, n int, keep bool) {
	if keep {
		s.append(p, n)
	} else {
		s.copy(p[n:])
	}
	s.measure(g)
	if s.unread() > g.HardLimit() {
		s.overrun(g)
		return
	}
	if !s.pumping {
		s.pumping = true
		go s.pump(g)
	}
}

func (s *sender) append(b []byte, sent int) {
	s.queue = append(s.queue, unsent{b, sent})
	s.size += int64(cap(b))
}

// copy appends p to the last chunk, and to a new one if necessary.
func (s *sender) copy(p []byte) {
	if last := len(s.queue) - 1; last >= 0 {
		c := &s.queue[last]
		n := min(len(p), cap(c.bytes)-len(c.bytes))
		c.bytes, p = append(c.bytes, p[:n]...), p[n:]
	}
	if len(p) > 0 {
		s.append(append(make([]byte, 0, max(replyChunk, len(p))), p...), 0)
	}
}

// measure counts the queue in the client's account, and starts or stops the timer that closes a
// client whose queue stays too long.
func (s *sender) measure(g *Guard) {
	g.Memory.Chunks.Store(int64(len(s.queue) + len(s.held)))
	if !g.Memory.Set(clientmem.Output, int(s.unread())) && s.err == nil {
		s.err = errEvicted
	}
	switch long := s.unread() > g.pauseAt(); {
	case !long && s.paused != nil:
		s.paused.Stop()
		s.paused = nil
	case long && s.paused == nil:
		if grace := g.grace(); grace > 0 {
			s.paused = s.endAfter(g, grace)
		}
	}
}

// endAfter returns a timer that closes the client after the grace, unless s.paused is another timer
// by then.
func (s *sender) endAfter(g *Guard, grace time.Duration) (timer *time.Timer) {
	return time.AfterFunc(grace, func() {
		g.writing.Lock()
		defer g.writing.Unlock()
		if s.paused == timer && s.err == nil {
			s.overrun(g)
		}
	})
}

// overrun closes a client that does not read.
func (s *sender) overrun(g *Guard) {
	if g.Unread != nil {
		g.Unread(s.unread())
	}
	s.fail(g, errUnreadReplies)
}

// fail ends sending and drops the queue.
func (s *sender) fail(g *Guard, why error) {
	if s.err == nil {
		s.err = why
	}
	s.clear(g)
	s.taken.Broadcast()
	g.Conn.Close() // wakes a Wait that sleeps
}

func (s *sender) clear(g *Guard) {
	s.queue, s.size, s.held, s.heldSize = nil, 0, nil, 0
	s.measure(g)
}

// sendNow sends as much as the socket accepts without blocking.
func (s *sender) sendNow(g *Guard, p []byte) (n int, err error) {
	s.limitWait(g) // even a write that does not block fails if an earlier deadline has passed
	if s.raw == nil {
		return g.Conn.Write(p)
	}
	s.piece, s.sent, s.failed = p, 0, nil
	err = s.raw.Write(s.try)
	s.piece = nil
	if err == nil {
		err = s.failed
	}
	return s.sent, err
}

// trySend writes until the socket accepts no more. It always returns true, so RawConn.Write does
// not block.
func (s *sender) trySend(fd uintptr) bool {
	for s.sent < len(s.piece) {
		n, err := writeSocket(fd, s.piece[s.sent:min(len(s.piece), s.sent+atOnce)])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return true
		case err != nil:
			s.failed = err
			return true
		}
		s.sent += n
	}
	return true
}

// pump sends the queue, and ends when it is empty.
func (s *sender) pump(g *Guard) {
	g.writing.Lock()
	defer g.writing.Unlock()
	for s.err == nil && len(s.queue) > 0 {
		first := s.queue[0]
		piece := first.bytes[first.sent:min(len(first.bytes), first.sent+pumped)]
		s.limitWait(g)
		g.writing.Unlock()
		n, err := g.Conn.Write(piece)
		g.writing.Lock()
		g.BytesOut.Add(int64(n))
		if s.err == nil {
			s.err = err
			s.pass(g, n)
		}
	}
	s.pumping = false
	if s.err != nil {
		s.fail(g, s.err)
	}
	s.taken.Broadcast()
}

// pass records that n more bytes of the first chunk were sent.
func (s *sender) pass(g *Guard, n int) {
	first := &s.queue[0]
	if first.sent += n; first.sent == len(first.bytes) {
		s.size -= int64(cap(first.bytes))
		*first = unsent{}
		if s.queue = s.queue[1:]; len(s.queue) == 0 {
			s.queue = nil
		}
		s.measure(g)
		s.taken.Broadcast()
	}
}

// limitWait sets the deadline of the write that follows: a client that does
// not read is idle too.
func (s *sender) limitWait(g *Guard) {
	limit := g.idleLimit()
	if s.closing {
		limit = closeGrace
	}
	if limit > 0 || s.timed {
		s.timed = limit > 0
		g.SetWriteDeadline(deadline(limit))
	}
}

// finish waits until the client has read all replies, or has read nothing for a second. Nothing can
// be sent afterwards.
func (s *sender) finish(g *Guard) {
	s.closing = true
	g.SetWriteDeadline(deadline(closeGrace)) // also for a write that is waiting
	for s.pumping {
		s.taken.Wait()
	}
	if s.err == nil {
		s.err = net.ErrClosed
	}
}
