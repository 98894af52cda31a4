package resp

import (
	"net"
	"sync"
	"syscall"
)

// maxBacklog is how many bytes of replies may wait for a client to take them; then its commands wait too.
const maxBacklog = 1 << 30

// pumped is how many bytes the pump sends at a time. A client that takes as many within its time is not idle.
const pumped = 64 << 10

// sender is the way of replies into the socket. A client may send a pipeline whole before it reads the first reply, however long
// both are: so what the socket does not take at once goes to a backlog, which a goroutine of its own sends, and the connection's
// goroutine goes on reading. While the client keeps up there is neither.
//
// All is done under guard.writing, but for what waits.
type sender struct {
	raw     syscall.RawConn       // nil if the connection is none of the system's: then sending waits
	try     func(fd uintptr) bool // trySend, made once
	piece   []byte                // what trySend is to send
	sent    int                   // and how much of it the socket has taken
	failed  error                 // or why not
	backlog []byte                // what the pump has yet to send
	pumping bool                  // there is a pump
	taken   sync.Cond             // the pump has got on, or ended
	err     error                 // why nothing can be sent any more
	timed   bool                  // a write deadline is set
	closing bool                  // finish waits
}

// send sends p, now or later.
func (s *sender) send(g *guard, p []byte) (n int, err error) {
	if s.err == nil && !s.pumping {
		n, s.err = s.sendNow(g, p)
		g.bytesOut.Add(int64(n))
	}
	for s.err == nil && len(s.backlog) > maxBacklog {
		s.taken.Wait()
	}
	if s.err != nil {
		return n, s.err
	}
	if n < len(p) {
		s.backlog = append(s.backlog, p[n:]...)
		if !s.pumping {
			s.pumping = true
			go s.pump(g)
		}
	}
	return len(p), nil
}

// sendNow sends what the socket takes without waiting.
func (s *sender) sendNow(g *guard, p []byte) (n int, err error) {
	s.limitWait(g) // also for a write that does not wait: it fails if an earlier deadline has passed
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

// trySend writes until the socket takes no more. It always claims to be done, lest it be made to wait.
func (s *sender) trySend(fd uintptr) bool {
	for s.sent < len(s.piece) {
		n, err := syscall.Write(int(fd), s.piece[s.sent:])
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

// pump sends the backlog, and ends when there is none.
func (s *sender) pump(g *guard) {
	g.writing.Lock()
	defer g.writing.Unlock()
	for chunk := []byte(nil); s.err == nil; {
		if len(chunk) == 0 {
			if chunk, s.backlog = s.backlog, nil; len(chunk) == 0 {
				break
			}
		}
		s.limitWait(g)
		g.writing.Unlock()
		n, err := g.Conn.Write(chunk[:min(len(chunk), pumped)])
		g.writing.Lock()
		chunk = chunk[n:]
		g.bytesOut.Add(int64(n))
		if s.err == nil {
			s.err = err
		}
		s.taken.Broadcast()
	}
	s.backlog, s.pumping = nil, false
	s.taken.Broadcast()
	if s.err != nil {
		g.Conn.Close() // wakes a Read that waits for a client to whom nothing can be told
	}
}

// limitWait sets the deadline of the write that follows: who does not read is idle too.
func (s *sender) limitWait(g *guard) {
	limit := g.idleLimit()
	if s.closing {
		limit = closeGrace
	}
	if limit > 0 || s.timed {
		s.timed = limit > 0
		g.SetWriteDeadline(deadline(limit))
	}
}

// finish waits until the client has taken all, unless it takes nothing for a second. Nothing can be sent afterwards.
func (s *sender) finish(g *guard) {
	s.closing = true
	g.SetWriteDeadline(deadline(closeGrace)) // also for a write that waits already
	for s.pumping {
		s.taken.Wait()
	}
	if s.err == nil {
		s.err = net.ErrClosed
	}
}
