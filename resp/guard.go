package resp

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	heldReplies = 64 << 10               // bytes of replies held back while commands are waiting
	closeGrace  = time.Second            // how long Close tries to send what is held
	leaveGrace  = 100 * time.Millisecond // how long a client is waited for that is still sending
)

// guard is a net.Conn that stands between a socket and redcon, so that redcon
// only ever sees whole, valid RESP arrays of at least one bulk string.
//
// redcon alone panics on a bulk length near the end of int64, lets its buffer
// double without bound while a command is incomplete, parses that command
// anew at each read, and differs from Redis in what it takes for an inline
// command. None of this can happen to a reader that is given commands whole.
//
//	socket -> framing.buf -> whole commands -> redcon
//	socket <- held        <- replies        <- redcon
//
// A connection that waits for its next command holds no buffer here: the read
// it waits in goes into redcon's.
//
// Replies are held back while more of a pipeline is waiting to be handed out,
// and are always sent before the guard waits for the socket. So a deep
// pipeline costs one write, and no reply waits for input.
//
// Read, setAuthenticated and words belong to the goroutine that serves the
// connection. All else may be called by any.
type guard struct {
	net.Conn
	in   framing
	rest []byte // what is still to be handed out of the command last taken from in
	deep bool   // the last read filled its space: there is likely to be more

	// parks keeps commands of more than 16 KB away from redcon, whose buffer
	// would stay as large as the largest until the connection is closed. It is
	// for a server that calls words for each command it handles.
	parks  bool
	parked [][]byte

	// idle says how long a read may wait, 0 for ever. It is asked before each
	// wait; retime tells a connection that waits already.
	idle     func() time.Duration
	timed    bool // a read deadline is set
	draining atomic.Bool
	leaving  atomic.Bool // only to see the client go: its time is set
	readErr  error       // what ended the stream

	// more is set while there is input that has not been handed out. That may
	// be a command not yet whole: the next Read finds out, and sends what is
	// held before it waits.
	more    atomic.Bool
	writing sync.Mutex
	held    []byte
	sender  sender

	bytesIn  atomic.Int64 // bytes read from the socket
	bytesOut atomic.Int64 // bytes written to the socket
	queued   atomic.Int64 // bytes read but not handed out, as of the last Read
}

// newGuard guards conn. idle may be nil, for never.
func newGuard(conn net.Conn, limits *guardLimits, idle func() time.Duration) *guard {
	g := &guard{Conn: conn, in: framing{limits: limits, bulk: -1}, idle: idle}
	g.sender.taken.L = &g.writing
	if socket, ok := conn.(syscall.Conn); ok {
		g.sender.raw, _ = socket.SyscallConn()
		g.sender.try = g.sender.trySend
	}
	return g
}

// setAuthenticated says whether the limits that hold before authentication
// are lifted. At first they are not. As long as they hold, commands are handed
// out one at a time, so that the next is judged by what this one changed.
func (g *guard) setAuthenticated(yes bool) { g.in.authenticated = yes }

// Read puts whole commands into p, as many as are there and fit. A command
// larger than p comes in pieces, the first when the last has arrived. Bytes of
// p beyond those returned are used as scratch.
//
// A protocol error is sent to the client, after the replies to all commands
// before it, and returned as a protocolError. Nothing is read after it.
func (g *guard) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for g.readErr == nil {
		if n := g.handOut(p); n > 0 {
			waiting := len(g.rest) + g.in.waiting()
			g.queued.Store(int64(waiting))
			g.more.Store(waiting > 0) // so also if the stream is refused
			return n, nil
		}
		g.readErr = g.fill(p)
	}
	g.in.release()
	return 0, g.readErr
}

// handOut copies whole commands to p and returns how many bytes they were.
func (g *guard) handOut(p []byte) (n int) {
	for {
		if len(g.rest) == 0 {
			if g.rest = g.in.next(); g.rest == nil {
				return n
			}
		}
		large := g.parks && len(g.rest) > deepBuffer
		if n > 0 && (large || len(g.rest) > len(p)-n) {
			return n // it comes first in the next Read
		}
		if large {
			g.park()
		}
		copied := copy(p[n:], g.rest)
		g.rest = g.rest[copied:]
		n += copied
		if len(g.rest) > 0 || !g.in.authenticated {
			return n
		}
	}
}

// standIn is handed out in the place of a parked command.
const standIn = "*1\r\n$6\r\nPARKED\r\n"

// park takes the command in rest out of the stream, with the buffer it is in.
// It is the first that this Read hands out: all before it have been handled,
// so the next call of words is about it.
func (g *guard) park() {
	g.parked = splitArray(g.rest)
	g.rest = []byte(standIn)
	g.in.detach()
}

// words returns the words of the command that is being handled, given those
// that redcon read. It is called once for each command.
func (g *guard) words(read [][]byte) [][]byte {
	if g.parked == nil {
		return read
	}
	parked := g.parked
	g.parked = nil
	return parked
}

// fill sends what is held and waits for more input, unless the stream ends
// here: then it returns why, having told the client. p is scratch.
func (g *guard) fill(p []byte) error {
	if refusal, ok := g.in.refusal.(protocolError); ok {
		g.Write([]byte("-ERR " + refusal.Error() + "\r\n"))
	}
	if err := g.flushReplies(); err != nil {
		return err
	}
	if g.in.refusal != nil {
		return g.leave(g.in.refusal)
	}
	if err := g.limitWait(); err != nil {
		return err
	}
	if g.draining.Load() {
		return g.leave(io.EOF)
	}
	g.queued.Store(int64(g.in.waiting()))
	n, err := g.receive(p)
	if n > 0 {
		g.bytesIn.Add(int64(n))
		return nil // if err is not nil, the next read tells it again
	}
	if g.draining.Load() && errors.Is(err, os.ErrDeadlineExceeded) {
		return g.leave(io.EOF)
	}
	return err
}

// receive reads from the socket: into p, if nothing is there to be continued
// and nothing says that p is too small, so as to hold no buffer meanwhile.
func (g *guard) receive(p []byte) (n int, err error) {
	space := p
	direct := g.deep || g.in.waiting() > 0
	if direct {
		space = g.in.room(g.deep)
	} else {
		g.in.release()
	}
	n, err = g.Conn.Read(space)
	g.deep = n == len(space)
	if direct {
		g.in.extend(n)
	} else {
		g.in.add(p[:n])
	}
	return n, err
}

// limitWait sets the deadline of the read that follows.
func (g *guard) limitWait() error {
	for {
		limit := g.idleLimit()
		if limit == 0 && !g.timed {
			return nil
		}
		g.timed = limit > 0
		if err := g.SetReadDeadline(deadline(limit)); err != nil {
			return err
		}
		if g.idleLimit() == limit { // else retime was called, and may have set its deadline before this one
			return nil
		}
	}
}

func (g *guard) idleLimit() time.Duration {
	if g.idle == nil {
		return 0
	}
	return g.idle()
}

// deadline is when a wait that begins now is over; a limit of 0 gives never.
func deadline(limit time.Duration) time.Time {
	if limit == 0 {
		return time.Time{}
	}
	return time.Now().Add(limit)
}

// retime makes a Read that waits go by what idle says now. It is to be called
// when that has changed.
func (g *guard) retime() {
	g.SetReadDeadline(deadline(g.idleLimit()))
	switch { // whose deadline has just been lost
	case g.leaving.Load():
		g.SetReadDeadline(time.Now().Add(leaveGrace))
	case g.draining.Load():
		g.drain()
	}
}

// drain makes Read return io.EOF once it has handed out all that has been
// read so far.
func (g *guard) drain() {
	g.draining.Store(true)
	// This wakes a Read that waits. One that is about to wait either sets its
	// deadline before this one, or finds draining set.
	g.SetReadDeadline(time.Unix(1, 0))
}

// leave ends a stream that the client may still be sending on, and returns why.
// If a socket is closed with input that nobody has read, the client may lose
// replies that it has not read: so it is told first, and what it is still
// sending is thrown away.
func (g *guard) leave(why error) error {
	g.writing.Lock()
	g.sender.finish(g, g.sendHeld)
	g.writing.Unlock()
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		g.leaving.Store(true)
		g.SetReadDeadline(time.Now().Add(leaveGrace))
		io.Copy(io.Discard, g.Conn)
	}
	return why
}

var heldBuffers = sync.Pool{New: func() any { return new([heldReplies]byte) }}

// Write sends p, or holds it back while more commands are waiting to be handed
// out. A failure to send what was held is returned by the next Read or Write.
func (g *guard) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	g.writing.Lock()
	defer g.writing.Unlock()
	hold := g.more.Load()
	if len(g.held)+len(p) > heldReplies {
		g.sendHeld()
	}
	if len(g.held) == 0 && !hold || len(p) > heldReplies {
		return g.send(p)
	}
	g.hold(p)
	if !hold {
		g.sendHeld()
	}
	if g.sender.err != nil {
		return 0, g.sender.err
	}
	return len(p), nil
}

// flushReplies sends what Write has held back, and lets it hold back nothing
// until the next Read. A handler calls it before it waits for something.
func (g *guard) flushReplies() error {
	g.more.Store(false)
	g.writing.Lock()
	defer g.writing.Unlock()
	g.sendHeld()
	return g.sender.err
}

// hold keeps p, for which there is room. g.writing is locked here and below.
func (g *guard) hold(p []byte) {
	if g.held == nil {
		g.held = heldBuffers.Get().(*[heldReplies]byte)[:0]
	}
	g.held = append(g.held, p...)
}

func (g *guard) sendHeld() {
	if g.held == nil {
		return
	}
	g.send(g.held)
	heldBuffers.Put((*[heldReplies]byte)(g.held[:heldReplies]))
	g.held = nil
}

func (g *guard) send(p []byte) (int, error) { return g.sender.send(g, p) }

// Close sends what is held and what the client has yet to take, unless it takes nothing for a second, and closes the socket.
func (g *guard) Close() error {
	if g.writing.TryLock() {
		g.sender.finish(g, g.sendHeld)
		g.writing.Unlock()
	}
	return g.Conn.Close()
}
