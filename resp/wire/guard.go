package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"rlserver/resp/clientmem"
	"rlserver/resp/config"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	closeGrace = time.Second            // how long Close tries to send what the client has yet to take
	leaveGrace = 100 * time.Millisecond // how long a client is waited for that is still sending
)

// guard is a net.Conn that stands between a socket and redcon, and keeps what
// clients send away from it: it takes the commands apart itself, and Read tells
// redcon only that there are some. Who is then called takes them from next.
//
//	socket -> framing.buf -> words   -> next
//	                      -> a batch -> Read -> redcon -> the handler
//	socket <- sender      <- Write
//
// While a command waits on the server, pause reads on: it sees the client go
// at once, and keeps what the client sends for later.
//
// redcon alone panics on a bulk length near the end of int64, lets its buffer
// double without bound while a command is incomplete, parses that command
// anew at each read, keeps the largest buffer until the end, allocates three
// times for each command, and differs from Redis in what it takes for an
// inline command. To check all that in front of it is to parse each command;
// to have it done once more took a fifth of the server's time.
//
// A connection that waits for its next command holds no buffer here: the read
// it waits in goes into redcon's.
//
// Read, next, ahead, take, pause and setAuthenticated belong to the goroutine that serves the
// connection. All else may be called by any.
type Guard struct {
	net.Conn
	in   framing
	head [][]byte // the command that Read has found and next has yet to return
	deep bool     // the last read filled its space: there is likely to be more

	// idle says how long a read may wait, 0 for ever. It is asked before each
	// wait; retime tells a connection that waits already.
	idle  func() time.Duration
	timed bool // a read deadline is set

	// loginTime says how long the client may take to authenticate, 0 for ever, and loginSince since when it may;
	// nil: it has. What is sent meanwhile does not matter.
	LoginTime  func() time.Duration
	loginSince atomic.Pointer[time.Time]

	draining atomic.Bool
	leaving  atomic.Bool // only to see the client go: its time is set
	woken    atomic.Bool // pause is to end
	readErr  error       // what ended the stream
	scratch  []byte      // what Read was given and has not filled, for pause: it is free until the next Read

	writing sync.Mutex
	sender  sender
	kind    atomic.Int32      // a clientClass
	Exempt  atomic.Bool       // by CLIENT NO-EVICT
	Unread  func(bytes int64) // is told when the client is closed for the replies it leaves unread; nil: nobody is
	Relieve func()            // is called, under no lock, when the client holds more, before it waits; nil: nothing is

	Memory clientmem.Account

	BytesIn  atomic.Int64 // bytes read from the socket
	BytesOut atomic.Int64 // bytes written to the socket
	Queued   atomic.Int64 // bytes read but neither handed out nor parsed, as of the last Read
}

// errLoginTimeout ends the stream of a client that has not authenticated in time.
var ErrLoginTimeout = errors.New("not authenticated within preauth-timeout")

// newGuard guards conn. idle may be nil, for never.
func NewGuard(conn net.Conn, limits *config.ConnectionLimits, idle func() time.Duration) *Guard {
	g := &Guard{Conn: conn, in: framing{limits: limits, bulk: -1}, idle: idle}
	g.sender.taken.L = &g.writing
	if socket, ok := conn.(syscall.Conn); ok {
		g.sender.raw, _ = socket.SyscallConn()
		g.sender.try = g.sender.trySend
	}
	return g
}

// setAuthenticated says whether the limits that hold before authentication
// are lifted, from the next command on. At first they are not.
func (g *Guard) SetAuthenticated(yes bool) {
	g.in.authenticated = yes
	kind := config.Unauthenticated
	if yes {
		kind = config.NormalClient
		g.loginSince.Store(nil)
	} else if g.loginSince.Load() == nil { // else RESET would give it more time
		now := time.Now()
		g.loginSince.Store(&now)
	}
	g.kind.Store(int32(kind))
}

// class says which output buffer limit holds for the client.
func (g *Guard) class() config.ClientClass { return config.ClientClass(g.kind.Load()) }

// batch is what redcon is given to read when there are commands.
const batch = "*1\r\n$5\r\nBATCH\r\n"

// Read waits until there is a command for next to return, and puts a batch into
// p. Before that p is scratch, the more the better.
//
// A protocol error is sent to the client and returned as a protocolError, once
// next has returned all commands before it. Nothing is read after it.
func (g *Guard) Read(p []byte) (int, error) {
	if len(p) < len(batch) {
		return 0, io.ErrShortBuffer
	}
	for g.readErr == nil {
		if g.head = g.in.next(); g.head != nil {
			g.Queued.Store(int64(g.in.unparsed()))
			g.scratch = p[len(batch):]
			return copy(p, batch), nil
		}
		g.readErr = g.fill(p)
	}
	g.in.release()
	return 0, g.readErr
}

// next returns the words of the next command that has arrived in full, or nil
// if there is none: then more has to be waited for, by Read. They are good until the call after.
func (g *Guard) Next() [][]byte {
	if words := g.head; words != nil {
		g.head = nil
		return words
	}
	return g.in.next()
}

// ahead returns the words of a command behind the one that next has returned, so many bytes behind it, and its size, or a size of 0 if there is none that
// can be told at once. The words that next has returned stay good.
func (g *Guard) Ahead(offset int) (words [][]byte, size int) { return g.in.ahead(offset) }

// take says that a command of this size, which ahead has returned, is next no more.
func (g *Guard) Take(size int) { g.in.take(g.in.head + size) }

// fill waits for more input, unless the stream ends here: then it returns why,
// having told the client. p is scratch.
func (g *Guard) fill(p []byte) error {
	if refusal, ok := g.in.refusal.(protocolError); ok {
		g.Write([]byte("-ERR " + refusal.Error() + "\r\n"))
	}
	if err := g.broken(); err != nil {
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
	g.Queued.Store(int64(g.in.unparsed()))
	n, err := g.receive(p)
	if n > 0 {
		g.BytesIn.Add(int64(n))
		return nil // if err is not nil, the next read tells it again
	}
	switch timeout := errors.Is(err, os.ErrDeadlineExceeded); {
	case timeout && g.draining.Load():
		return g.leave(io.EOF)
	case timeout && g.woken.Swap(false): // by somebody who came too late for the pause
		g.timed = true
		return nil
	case timeout && g.loginIsOver():
		return ErrLoginTimeout
	}
	return err
}

// pause waits until wake is called, and keeps what the client sends meanwhile,
// as far as a command may be long. It returns why it has not waited: the
// client is gone, or the server ends. The words that next has returned are
// good no longer. A client that waits is not idle.
func (g *Guard) Pause() error {
	if len(g.scratch) == 0 {
		g.scratch = make([]byte, 512)
	}
	g.timed, g.deep = true, false
	for {
		if err := g.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
		switch { // whoever sets one of these sets the deadline after that: so either it is seen here, or it ends the read
		case g.woken.Swap(false):
			return nil
		case g.draining.Load():
			return io.EOF
		case int64(g.in.waiting()) > g.in.limits.MaxQuery.Load():
			return errBigQuery
		}
		g.Queued.Store(int64(g.in.unparsed()))
		n, err := g.receive(g.scratch)
		g.BytesIn.Add(int64(n))
		if n == 0 && err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
}

// pauseFor is a pause that ends by itself: after a time, or when the client has no more time to authenticate.
func (g *Guard) PauseFor(d time.Duration) error {
	if by := g.loginBy(); !by.IsZero() {
		d = min(d, time.Until(by))
	}
	timer := time.AfterFunc(d, g.Wake)
	defer timer.Stop()
	return g.Pause()
}

// wake ends a pause, this one or the next.
func (g *Guard) Wake() {
	g.woken.Store(true)
	g.SetReadDeadline(past)
}

// receive reads from the socket: into p, if nothing is there to be continued
// and nothing says that p is too small, so as to hold no buffer meanwhile.
func (g *Guard) receive(p []byte) (n int, err error) {
	space := p
	direct := g.deep || g.in.waiting() > 0
	if !direct {
		g.in.release()
	}
	if !g.mayHold(direct) {
		return 0, errEvicted
	}
	if direct {
		space = g.in.room(g.deep)
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

// mayHold counts what the client holds while the next read waits, and what the buffer is about to grow to. It tells whether the client may go on.
func (g *Guard) mayHold(direct bool) bool {
	size := 0
	if direct {
		g.in.moveToFront()
		size = g.in.nextSize(g.deep)
	}
	before := g.Memory.Part(clientmem.Input)
	alive := g.Memory.Set(clientmem.Input, size) && g.Memory.Set(clientmem.Args, g.in.wordsSize())
	if int64(size) > before && g.Memory.PoolFull() && g.Relieve != nil {
		g.Relieve()
		alive = !g.Memory.Closed()
	}
	return alive
}

// limitWait sets the deadline of the read that follows.
func (g *Guard) limitWait() error {
	for {
		limit, login := g.idleLimit(), g.loginBy()
		if limit == 0 && login.IsZero() && !g.timed {
			return nil
		}
		g.timed = limit > 0 || !login.IsZero()
		if err := g.SetReadDeadline(sooner(deadline(limit), login)); err != nil {
			return err
		}
		if g.idleLimit() == limit && g.loginBy().Equal(login) { // else retime was called, and may have set its deadline before this one
			return nil
		}
	}
}

func (g *Guard) idleLimit() time.Duration {
	if g.idle == nil {
		return 0
	}
	return g.idle()
}

// loginBy is when the client must have authenticated; zero: it has, or has any time.
func (g *Guard) loginBy() time.Time {
	since := g.loginSince.Load()
	if since == nil || g.LoginTime == nil {
		return time.Time{}
	}
	limit := g.LoginTime()
	if limit == 0 {
		return time.Time{}
	}
	return since.Add(limit)
}

func (g *Guard) loginIsOver() bool {
	by := g.loginBy()
	return !by.IsZero() && !time.Now().Before(by)
}

// sooner is the first of two deadlines, of which zero is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
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
func (g *Guard) Retime() {
	g.SetReadDeadline(sooner(deadline(g.idleLimit()), g.loginBy()))
	switch { // whose deadline has just been lost
	case g.leaving.Load():
		g.SetReadDeadline(time.Now().Add(leaveGrace))
	case g.draining.Load():
		g.Drain()
	case g.woken.Load():
		g.Wake()
	}
}

// past is a deadline that ends a read at once.
var past = time.Unix(1, 0)

// drain makes Read return io.EOF once it has handed out all that has been
// read so far.
func (g *Guard) Drain() {
	g.draining.Store(true)
	// This wakes a Read that waits. One that is about to wait either sets its
	// deadline before this one, or finds draining set.
	g.SetReadDeadline(past)
}

// leave ends a stream that the client may still be sending on, and returns why.
// If a socket is closed with input that nobody has read, the client may lose
// replies that it has not read: so it is told first, and what it is still
// sending is thrown away.
func (g *Guard) leave(why error) error {
	g.writing.Lock()
	g.sender.finish(g)
	g.writing.Unlock()
	if half, ok := g.Conn.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		g.leaving.Store(true)
		g.SetReadDeadline(time.Now().Add(leaveGrace))
		io.Copy(io.Discard, g.Conn)
	}
	return why
}

// gone tells whether the client is, or the connection was closed: for what takes long to answer. Of a client that has sent more it
// cannot be told.
func (g *Guard) Gone() (yes bool) {
	if g.sender.raw == nil {
		return false
	}
	err := g.sender.raw.Control(func(fd uintptr) {
		var next [1]byte
		n, _, err := syscall.Recvfrom(int(fd), next[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		yes = n == 0 && err == nil || err != nil && err != syscall.EAGAIN && err != syscall.EINTR
	})
	return yes || err != nil
}

// Write sends p, now or as soon as the client takes it. A failure to send is returned by the next Read or Write.
func (g *Guard) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return g.Send(p, false)
}

// send is Write. If keep is true, p belongs to the guard from then on.
func (g *Guard) Send(p []byte, keep bool) (int, error) {
	g.writing.Lock()
	defer g.writing.Unlock()
	return g.sender.send(g, p, keep)
}

// broken is why nothing can be sent any more, nil while it can.
func (g *Guard) broken() error {
	g.writing.Lock()
	defer g.writing.Unlock()
	return g.sender.err
}

// Close waits until the client has taken what was sent, unless it takes nothing for a second, and closes the socket.
func (g *Guard) Close() error {
	g.Settle()
	return g.Conn.Close()
}

// settle is Close, but leaves the socket open.
func (g *Guard) Settle() {
	if g.writing.TryLock() {
		g.sender.finish(g)
		g.writing.Unlock()
	}
}

// Feed adds bytes to the input as if they had been read from the socket.
func (g *Guard) Feed(p []byte) { g.in.add(p) }

// Buffered returns how many bytes of input Next has not returned.
func (g *Guard) Buffered() int { return g.in.waiting() }

// WordsSize returns the size of the argument list of the last command in bytes, 0 if it is small.
func (g *Guard) WordsSize() int { return g.in.wordsSize() }

// Release drops the input buffer and all that is in it.
func (g *Guard) Release() { g.in.release() }
