package resp

import (
	"errors"
	"math"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Redis' limits on what a client may send, from its protocol reader.
const (
	maxLine           = 64 << 10        // an inline command, or a length header, without its line end
	maxArgs           = math.MaxInt32   // bulk strings in one command
	maxArgsBeforeAuth = 10              // the same, before authentication
	maxBulkBeforeAuth = 16384           // bytes in one bulk string, before authentication
	defaultMaxBulk    = 512 << 20       // bytes in one bulk string: proto-max-bulk-len
	defaultMaxQuery   = 1 << 30         // bytes in one command: client-query-buffer-limit
	restBuffer        = 4 << 10         // what a connection needs that does not pipeline
	deepBuffer        = 16 << 10        // what is read at a time from one that does
	heldReplies       = 64 << 10        // replies held back while commands are waiting
	closeGrace        = 1 * time.Second // how long Close tries to send held replies
)

// protocolError is a breach of RESP, in the words Redis answers it with. The
// guard has sent it to the client by the time Read returns it.
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

// errBigQuery ends a connection whose command is beyond
// client-query-buffer-limit. As in Redis, the client gets no answer.
var errBigQuery = errors.New("command beyond client-query-buffer-limit")

// guardLimits are the limits an operator may change while the server runs.
// One value is shared by all connections.
type guardLimits struct {
	maxBulk  atomic.Int64 // bytes in one bulk string
	maxQuery atomic.Int64 // bytes in one command as sent
}

func newGuardLimits() *guardLimits {
	l := new(guardLimits)
	l.maxBulk.Store(defaultMaxBulk)
	l.maxQuery.Store(defaultMaxQuery)
	return l
}

// guard is a net.Conn that stands between a socket and redcon, so that redcon
// only ever sees whole, valid RESP arrays of at least one bulk string.
//
// redcon alone panics on a bulk length near the end of int64, lets its buffer
// double without bound while a command is incomplete, parses that command
// anew each time it reads, and differs from Redis in what it takes for an
// inline command. None of this can happen to a reader that is given commands
// whole. So the guard reads into a buffer of its own, checks framing by
// Redis' rules, and hands on only what is complete:
//
//	 buf  [ handed out | whole | incomplete ........ | room to read into ]
//	                   ^ head          ^ pos   ^ scan ^ len(buf)
//
//	head   where the next command to hand out begins
//	pos    how far that command has been checked
//	scan   how far the line at pos has been searched for its end
//
// All three only move forward, so the work is linear in the bytes that
// arrive, even one at a time.
//
// The buffer grows with what has arrived, never by what a length promises,
// and a connection that waits for its next command holds none at all: the
// blocking read then goes into the caller's own slice.
//
// Replies are held back while more of a pipeline is waiting to be handed out,
// and always sent before the guard waits for the socket, so that a deep
// pipeline costs one write and no reply waits for input.
//
// Read and setAuthenticated belong to the goroutine that serves the
// connection. Write, Close, flushReplies and the counters may be used by any.
type guard struct {
	net.Conn
	limits *guardLimits

	// idle says how long a read may wait, 0 for ever. It is asked before
	// each wait, so that a change of `timeout` reaches idle connections with
	// their next command.
	idle  func() time.Duration
	timed bool // a read deadline is set

	authenticated bool

	buf  []byte
	head int
	pos  int
	scan int
	args int    // bulk strings the command at head still lacks; 0 before its header is read
	bulk int    // length of the bulk string at pos, or -1 before its header is read
	deep bool   // the last read filled its buffer: more is likely to be there
	rest []byte // the part of the last command that did not fit into the caller's slice

	inline  []byte // the last inline command, as an array
	refusal error  // the protocol error that ends the stream, once all before it is handed out
	readErr error  // what ended the stream

	// more is set while there is input that has not been handed out. It may
	// also be a command not yet whole: the next Read finds out, and sends
	// what is held before it waits.
	more atomic.Bool

	writing  sync.Mutex
	held     []byte // replies not yet sent
	writeErr error

	bytesIn  atomic.Int64 // bytes read from the socket
	bytesOut atomic.Int64 // bytes written to the socket
	queued   atomic.Int64 // bytes read but not handed out, when Read last returned
}

// newGuard guards conn. A connection that need not authenticate is to be
// told so by setAuthenticated; idle may be nil.
func newGuard(conn net.Conn, limits *guardLimits, idle func() time.Duration) *guard {
	return &guard{Conn: conn, limits: limits, idle: idle, bulk: -1}
}

// setAuthenticated says whether the limits that hold before authentication
// are lifted. It takes effect with the next command: until then the guard
// hands out one command at a time.
func (g *guard) setAuthenticated(yes bool) { g.authenticated = yes }

// Read puts whole commands into p, as many as are there and fit. A command
// larger than p comes in pieces, the first of which is handed out when the
// last has arrived. Bytes of p beyond those returned are used as scratch.
//
// A protocol error is sent to the client, after the replies to all commands
// before it, and returned as a protocolError; nothing is read after it.
func (g *guard) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for g.readErr == nil {
		if n := g.handOut(p); n > 0 {
			waiting := len(g.rest) + len(g.buf) - g.head
			g.queued.Store(int64(waiting))
			g.more.Store(waiting > 0 || g.refusal != nil)
			return n, nil
		}
		g.readErr = g.fill(p)
	}
	g.dropInput()
	return 0, g.readErr
}

// handOut copies whole commands to p and returns how many bytes they were.
func (g *guard) handOut(p []byte) int {
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	if n > 0 && (len(g.rest) > 0 || !g.authenticated) {
		return n
	}
	for n < len(p) {
		frame := g.next()
		if len(frame) > len(p)-n {
			g.rest = frame
			if n == 0 {
				n = copy(p, frame)
				g.rest = frame[n:]
			}
			return n
		}
		n += copy(p[n:], frame)
		if frame == nil || !g.authenticated {
			return n
		}
	}
	return n
}

// next returns the next whole command as a valid array, or nil if there is
// none: it has not arrived, or the stream was refused. What it returns is good
// until the call after.
func (g *guard) next() []byte {
	for g.refusal == nil && g.head < len(g.buf) {
		switch {
		case g.args > 0:
			if !g.readBulks() {
				return nil
			}
			frame := g.buf[g.head:g.pos]
			g.head = g.pos
			return frame
		case g.buf[g.head] == '*':
			if !g.readArgs() {
				return nil
			}
		default:
			if !g.readInline() {
				return nil
			}
			if len(g.inline) > 0 {
				return g.inline
			}
		}
	}
	return nil
}

// readInline turns the line at head into an array in g.inline, which an empty
// line leaves empty. It reports whether there was a line.
func (g *guard) readInline() bool {
	end, ok := g.lineEnd('\n', errBigInline)
	if !ok {
		return false
	}
	line := g.buf[g.head:end]
	if len(line) > 0 && line[len(line)-1] == '\r' {
		line = line[:len(line)-1]
	}
	if g.inline, ok = appendInline(g.inline[:0], line); !ok {
		return g.refuse(errQuotes)
	}
	g.advance(end + 1)
	g.head = g.pos
	return true
}

// readArgs reads the header of an array. One of no bulk strings, or fewer, is
// passed over.
func (g *guard) readArgs() bool {
	n, next, ok := g.header(errBigArgsLine)
	switch {
	case next == 0:
		return false
	case !ok || n > maxArgs:
		return g.refuse(errArgsCount)
	case n > maxArgsBeforeAuth && !g.authenticated:
		return g.refuse(errArgsBeforeAuth)
	}
	g.advance(next)
	if n <= 0 {
		g.head = g.pos
		return true
	}
	g.args = int(n)
	return true
}

// readBulks reads the bulk strings the command at head still lacks and
// reports whether that made it whole.
func (g *guard) readBulks() bool {
	for ; g.args > 0; g.args-- {
		if g.bulk < 0 && !g.readBulkLength() {
			return false
		}
		if len(g.buf)-g.pos-2 < g.bulk {
			return false
		}
		// Redis skips two bytes after a bulk string without looking at
		// them; redcon insists on what they should have been.
		end := g.pos + g.bulk
		g.buf[end], g.buf[end+1] = '\r', '\n'
		g.advance(end + 2)
		g.bulk = -1
	}
	return true
}

// readBulkLength reads the header of a bulk string.
func (g *guard) readBulkLength() bool {
	n, next, ok := g.header(errBigBulkLine)
	if next == 0 {
		return false
	}
	switch first := g.buf[g.pos]; {
	case first != '$':
		return g.refuse(notABulk(first))
	case !ok || n < 0 || n > g.limits.maxBulk.Load():
		return g.refuse(errBulkLength)
	case n > maxBulkBeforeAuth && !g.authenticated:
		return g.refuse(errBulkBeforeAuth)
	}
	g.advance(next)
	g.bulk = int(n)
	return true
}

// notABulk names the byte that stands where a bulk string should begin. Redis
// does not let a line end into an error reply.
func notABulk(b byte) protocolError {
	if b == '\r' || b == '\n' {
		b = ' '
	}
	return "expected '$', got '" + protocolError([]byte{b}) + "'"
}

// header reads the line at pos as a type byte and a number. next is where the
// following line begins, or 0 if the line is not there yet; ok says whether it
// held a number as Redis writes one.
func (g *guard) header(tooBig protocolError) (n int64, next int, ok bool) {
	end, ok := g.lineEnd('\r', tooBig)
	if !ok || end+1 == len(g.buf) {
		return 0, 0, false
	}
	// Redis takes any byte after the CR for an LF; redcon does not.
	g.buf[end+1] = '\n'
	if end == g.pos {
		return 0, end + 2, false
	}
	n, ok = parseInt(g.buf[g.pos+1 : end])
	return n, end + 2, ok
}

// lineEnd finds the byte that ends the line at pos. A NUL hides all that
// comes after it, as it does from Redis, which searches with strchr: such a
// line never ends, it only becomes too big.
func (g *guard) lineEnd(end byte, tooBig protocolError) (int, bool) {
	stop := min(len(g.buf), g.pos+maxLine+1)
	for i, c := range g.buf[g.scan:stop] {
		if c == end {
			return g.scan + i, true
		}
		if c == 0 {
			stop = g.scan + i
			break
		}
	}
	g.scan = stop
	if len(g.buf)-g.pos > maxLine {
		g.refuse(tooBig)
	}
	return 0, false
}

func (g *guard) advance(to int) { g.pos, g.scan = to, to }

func (g *guard) refuse(err protocolError) bool {
	g.refusal = err
	return false
}

// fill sends what is held, answers a protocol error if there is one, and
// otherwise waits for more input. p is scratch.
func (g *guard) fill(p []byte) error {
	if g.refusal != nil {
		return g.answerRefusal()
	}
	if err := g.flushReplies(); err != nil {
		return err
	}
	waiting := len(g.buf) - g.head
	if int64(waiting) > g.limits.maxQuery.Load() {
		return errBigQuery
	}
	if err := g.setIdle(); err != nil {
		return err
	}
	g.queued.Store(int64(waiting))
	if waiting == 0 && !g.deep {
		return g.readVia(p)
	}
	return g.readMore()
}

// answerRefusal sends the protocol error after all replies before it.
func (g *guard) answerRefusal() error {
	reply := "-ERR " + g.refusal.Error() + "\r\n"
	g.more.Store(false)
	if _, err := g.Write([]byte(reply)); err != nil {
		return err
	}
	return g.refusal
}

// setIdle limits the wait that follows, if the connection may idle out.
func (g *guard) setIdle() error {
	var limit time.Duration
	if g.idle != nil {
		limit = g.idle()
	}
	switch {
	case limit > 0:
		g.timed = true
		return g.SetReadDeadline(time.Now().Add(limit))
	case g.timed:
		g.timed = false
		return g.SetReadDeadline(time.Time{})
	}
	return nil
}

// readVia waits with nothing but the caller's slice to read into.
func (g *guard) readVia(p []byte) error {
	g.dropInput()
	n, err := g.Conn.Read(p)
	if n == 0 {
		return err
	}
	g.bytesIn.Add(int64(n))
	g.deep = n == len(p)
	g.grow(n)
	g.buf = append(g.buf, p[:n]...)
	return nil
}

// readMore reads behind what is there already.
func (g *guard) readMore() error {
	g.makeRoom()
	room := g.buf[len(g.buf):cap(g.buf)]
	n, err := g.Conn.Read(room)
	if n == 0 {
		return err
	}
	g.bytesIn.Add(int64(n))
	g.deep = n == len(room)
	g.buf = g.buf[:len(g.buf)+n]
	return nil
}

// makeRoom moves the command at head to the front and grows the buffer if that
// was not enough. A command is moved at most once: after that it is in front.
func (g *guard) makeRoom() {
	if g.head > 0 {
		n := copy(g.buf, g.buf[g.head:])
		g.buf = g.buf[:n]
		g.pos -= g.head
		g.scan -= g.head
		g.head = 0
	}
	if cap(g.buf) < deepBuffer && g.deep {
		g.grow(deepBuffer)
	} else if len(g.buf) == cap(g.buf) {
		g.grow(max(2*cap(g.buf), deepBuffer))
	}
}

var (
	restBuffers = sync.Pool{New: func() any { return new([restBuffer]byte) }}
	deepBuffers = sync.Pool{New: func() any { return new([deepBuffer]byte) }}
	heldBuffers = sync.Pool{New: func() any { return new([heldReplies]byte) }}
)

// grow makes the buffer hold at least size bytes.
func (g *guard) grow(size int) {
	if cap(g.buf) >= size {
		return
	}
	var larger []byte
	switch {
	case size <= restBuffer:
		larger = restBuffers.Get().(*[restBuffer]byte)[:0]
	case size <= deepBuffer:
		larger = deepBuffers.Get().(*[deepBuffer]byte)[:0]
	default:
		larger = make([]byte, 0, size)
	}
	larger = append(larger, g.buf...)
	giveBack(g.buf)
	g.buf = larger
}

// dropInput gives up the buffer and what is in it.
func (g *guard) dropInput() {
	giveBack(g.buf)
	g.buf, g.rest = nil, nil
	g.head, g.pos, g.scan = 0, 0, 0
	if cap(g.inline) > restBuffer {
		g.inline = nil
	}
}

func giveBack(buf []byte) {
	switch cap(buf) {
	case restBuffer:
		restBuffers.Put((*[restBuffer]byte)(buf[:restBuffer]))
	case deepBuffer:
		deepBuffers.Put((*[deepBuffer]byte)(buf[:deepBuffer]))
	}
}

// Write sends p, or holds it back while more commands are waiting to be handed
// out. A failure to send what was held is returned by the next call of Read or
// Write.
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
	if len(g.held) == 0 && (!hold || len(p) > heldReplies) {
		return g.send(p)
	}
	if g.writeErr != nil {
		return 0, g.writeErr
	}
	if g.held == nil {
		g.held = heldBuffers.Get().(*[heldReplies]byte)[:0]
	}
	g.held = append(g.held, p...)
	if !hold {
		g.sendHeld()
	}
	if g.writeErr != nil {
		return 0, g.writeErr
	}
	return len(p), nil
}

// flushReplies sends what Write has held back, and holds back no more until
// the next Read. A handler calls it before it blocks.
func (g *guard) flushReplies() error {
	g.more.Store(false)
	g.writing.Lock()
	defer g.writing.Unlock()
	g.sendHeld()
	return g.writeErr
}

// sendHeld sends what is held. g.writing is locked.
func (g *guard) sendHeld() {
	if g.held == nil {
		return
	}
	g.send(g.held)
	heldBuffers.Put((*[heldReplies]byte)(g.held[:heldReplies]))
	g.held = nil
}

// send writes to the socket, unless that has failed before. g.writing is
// locked.
func (g *guard) send(p []byte) (int, error) {
	if g.writeErr != nil {
		return 0, g.writeErr
	}
	n, err := g.Conn.Write(p)
	g.bytesOut.Add(int64(n))
	g.writeErr = err
	return n, err
}

// Close sends what is held, if the peer takes it within a second, and closes
// the socket. It does not wait for a Write that is stuck: that fails.
func (g *guard) Close() error {
	if g.writing.TryLock() {
		if g.held != nil {
			g.SetWriteDeadline(time.Now().Add(closeGrace))
			g.sendHeld()
		}
		g.writeErr = net.ErrClosed
		g.writing.Unlock()
	}
	return g.Conn.Close()
}
