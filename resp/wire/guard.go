package wire

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"rlserver/resp/clientmem"
	"rlserver/resp/config"
)

const (
	closeGrace = time.Second            // for which Close waits for the client to read its replies
	leaveGrace = 100 * time.Millisecond // for which leave discards input
)

// Guard is a net.Conn between a socket and its session. The package comment describes it, and which
// methods belong to the connection's goroutine. Its Read is the socket's: use Wait and Next.
type Guard struct {
	net.Conn

	Memory   clientmem.Account // memory of the client
	BytesIn  atomic.Int64      // bytes read from the socket
	BytesOut atomic.Int64      // bytes written to the socket
	Queued   atomic.Int64      // bytes read but neither returned nor checked, as of the last Wait
	Exempt   atomic.Bool       // by CLIENT NO-EVICT
	Listens  atomic.Bool       // the client only listens: it is never idle

	// LoginTime returns how long the client may take to authenticate, 0 for no limit. nil: no
	// limit.
	LoginTime func() time.Duration
	// Unread is called when the client is closed for too many bytes of unread replies. May be nil.
	Unread func(bytes int64)
	// Relieve is called without locks, before a wait, if the memory of the client has grown and its
	// pool is full. May be nil.
	Relieve func()
	// Admit is called when the TLS handshake is complete. A refusal, the text of an error, is sent
	// to the client, and the stream ends. May be nil.
	Admit func() (refusal string)

	tls  *secure // nil without TLS
	in   framing
	head [][]byte // the command that Wait has found and Next has not returned
	deep bool     // the last read filled its buffer: there is probably more

	idle  func() time.Duration // how long a read may wait, 0 for no limit; called before each wait
	timed bool                 // a read deadline is set

	loginSince atomic.Pointer[time.Time] // start of the time to authenticate; nil: authenticated

	draining atomic.Bool
	leaving  atomic.Bool // leave discards the input, with a deadline of its own
	woken    atomic.Bool // Pause must end
	waking   sync.Mutex  // held by Wake
	readErr  error       // the error that ended the stream
	scratch  []byte      // Wait's buffer, which Pause may use until the next Wait

	receiver receiver
	writing  sync.Mutex
	sender   sender
	kind     atomic.Int32 // a config.ClientClass
}

// NewGuard returns a guard of a connection that has not authenticated. idle returns how long the
// client may be idle, 0 for no limit; nil: no limit.
func NewGuard(conn net.Conn, limits *config.ConnectionLimits, idle func() time.Duration) *Guard {
	g := &Guard{Conn: conn, in: framing{limits: limits, bulk: -1, begin: -1}, idle: idle}
	g.sender.taken.L = &g.writing
	if socket, ok := conn.(syscall.Conn); ok {
		raw, err := socket.SyscallConn()
		g.sender.raw, g.sender.secured = raw, err != nil
		g.sender.try, g.receiver.try = g.sender.trySend, g.receiver.tryReceive
	}
	return g
}

// SetAuthenticated removes the limits that apply before authentication, or restores them, from the
// next command on.
func (g *Guard) SetAuthenticated(yes bool) {
	g.in.authenticated = yes
	kind := config.Unauthenticated
	if yes {
		kind = max(config.NormalClient, g.class())
		g.loginSince.Store(nil)
	} else if g.loginSince.Load() == nil { // otherwise RESET would extend the time
		now := time.Now()
		g.loginSince.Store(&now)
	}
	g.kind.Store(int32(kind))
}

// SetSubscribed sets whether the client, which has logged in, has subscribed to anything, and how
// many bytes of memory the subscriptions take. If so, another output buffer limit applies to it,
// and it is never idle. Any goroutine may call it.
func (g *Guard) SetSubscribed(yes bool, bytes int) {
	kind := config.NormalClient
	if yes {
		kind = config.PubSubClient
	}
	g.kind.Store(int32(kind))
	g.Memory.Set(clientmem.Subscriptions, bytes)
}

// Subscribed reports whether the client has subscribed to anything. Any goroutine may call it.
func (g *Guard) Subscribed() bool { return g.class() == config.PubSubClient }

// LoggedIn reports whether the client is authenticated. Any goroutine may call it.
func (g *Guard) LoggedIn() bool { return g.loginSince.Load() == nil }

// LimitBulk limits the bulk strings of single commands: most returns the maximum length in bytes of
// an argument of the command with a name. One that is far longer ends the stream when its length
// arrives, before any memory is used for it.
func (g *Guard) LimitBulk(most func(name []byte) int64) { g.in.maxBulk = most }

// class returns the class of the output buffer limit that applies to the client.
func (g *Guard) class() config.ClientClass { return config.ClientClass(g.kind.Load()) }

// Wait waits until there is a command for Next to return. Until then it uses buf, which must not be
// empty, as a buffer; a larger one saves reads.
//
// After Next has returned all commands, Wait returns the error that ended the stream; io.EOF: the
// client has closed the connection, or Drain was called. A protocol error has been sent to the
// client. Nothing is read after an error.
func (g *Guard) Wait(buf []byte) error {
	for g.readErr == nil {
		if g.head = g.in.next(); g.head != nil {
			g.Queued.Store(int64(g.in.unparsed()))
			g.scratch = buf
			return nil
		}
		g.readErr = g.fill(buf)
	}
	g.in.release()
	return g.readErr
}

// Next returns the words of the next command that has arrived in full, or nil if Wait has to be
// called first. The words are valid until the next call.
func (g *Guard) Next() [][]byte {
	if words := g.head; words != nil {
		g.head = nil
		return words
	}
	return g.in.next()
}

// Ahead returns the words and the size of the command that begins offset bytes after the last one
// that Next has returned. The size is 0 if the command has not arrived in full or is not of the
// common form. repeats reports whether the words, but for the second, are those of the command
// before. The words that Next has returned stay valid.
func (g *Guard) Ahead(offset int) (words [][]byte, size int, repeats bool) {
	return g.in.ahead(offset)
}

// Take skips the next command, which Ahead has returned with this size.
func (g *Guard) Take(size int) { g.in.take(g.in.head + size) }

// Drain makes Wait return io.EOF after all commands that have been read in full.
func (g *Guard) Drain() {
	g.draining.Store(true)
	// This wakes a Wait that is running. One that is about to start either sets its deadline before
	// this one, or finds draining set.
	g.SetReadDeadline(past)
}

// leave ends a stream on which the client may still be sending, and returns why. Closing a socket
// with unread input resets the connection, and the client may lose replies. So leave first closes
// the server's side and discards the input that still arrives.
func (g *Guard) leave(why error) error {
	g.closeNotify()
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

// Gone reports whether the client has closed the connection, for calls that take long. It cannot
// detect that if the client has sent more input, which over TLS includes the close notification.
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

// Write sends p, or queues the part that the client does not accept at once. The next Wait or Write
// returns the error of a queued write.
func (g *Guard) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	return g.Send(p, false)
}

// Send is Write. If keep is true, the guard owns p from then on. What Push was given since Hold
// follows p.
func (g *Guard) Send(p []byte, keep bool) (n int, err error) {
	if n, err = g.Offer(p, keep); err == nil {
		err = g.AwaitRoom()
	}
	if err != nil {
		return n, err
	}
	return len(p), nil
}

// Offer is Send without waiting for the client: AwaitRoom has to be called before the next reply.
// It returns how many bytes were sent at once.
func (g *Guard) Offer(p []byte, keep bool) (n int, err error) {
	if g.tls != nil {
		if n, err = g.encrypt(p); err != nil {
			return n, err
		}
	}
	g.writing.Lock()
	defer g.writing.Unlock()
	if g.tls == nil {
		n = g.sender.offer(g, p, keep)
	}
	for g.sender.holding {
		g.release(g.sender.takeHeld(g))
	}
	return n, g.sender.err
}

// AwaitRoom waits as long as the client leaves too many replies unread. It returns the error that
// has ended sending.
func (g *Guard) AwaitRoom() error {
	g.writing.Lock()
	defer g.writing.Unlock()
	return g.sender.wait(g)
}

// AwaitRoomFor waits until n bytes more can be offered without exceeding the hard limit, if that is
// possible. It is for a client that must not be closed for them.
func (g *Guard) AwaitRoomFor(n int) {
	g.writing.Lock()
	defer g.writing.Unlock()
	for s := &g.sender; s.err == nil && len(s.queue) > 0 && s.unread()+int64(n) > g.HardLimit(); {
		s.taken.Wait()
	}
}

// broken returns the error that ended sending, or nil.
func (g *Guard) broken() error {
	g.writing.Lock()
	defer g.writing.Unlock()
	return g.sender.err
}

// Close closes the socket after the client has read its replies, or has read nothing for a second.
func (g *Guard) Close() error {
	g.EndSending()
	return g.Conn.Close()
}

// EndSending waits like Close and ends sending, but leaves the socket open.
func (g *Guard) EndSending() {
	g.closeNotify()
	if g.writing.TryLock() {
		g.sender.finish(g)
		g.writing.Unlock()
	}
}
