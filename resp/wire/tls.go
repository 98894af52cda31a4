package wire

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"rlserver/resp/clientmem"
	"rlserver/resp/config"
)

// HandshakeTime is the maximum time of the TLS handshake.
const HandshakeTime = 10 * time.Second

// Replies to clients that do not speak TLS on a port with TLS.
const (
	plainRESPAnswer = "-ERR this port expects TLS: connect with TLS (redis-cli --tls), or to the port without it\r\n"
	plainHTTPAnswer = "HTTP/1.0 400 Bad Request\r\n\r\nThis port expects TLS and the Redis protocol, not HTTP.\n"
)

// errRefused ends the stream of a client that Admit has refused.
var errRefused = errors.New("refused after the TLS handshake")

var errNoHandshake = errors.New("the TLS handshake is not complete")

// HandshakeError is the error of Read when the TLS handshake fails.
type HandshakeError struct{ cause error }

// Error returns the cause.
func (e *HandshakeError) Error() string { return "TLS handshake: " + e.cause.Error() }

// Unwrap returns the cause.
func (e *HandshakeError) Unwrap() error { return e.cause }

// Left reports whether the client has just closed the connection, like programs that only check
// that the port is open, or the server has.
func (e *HandshakeError) Left() bool {
	return errors.Is(e.cause, io.EOF) || errors.Is(e.cause, net.ErrClosed) || errors.Is(e.cause, syscall.ECONNRESET)
}

// secure is the TLS of a connection, between the guard and the socket:
//
//	socket -> beneath.Read -> tls.Conn -> receive
//	socket <- sender <- beneath.Write <- tls.Conn <- Send
//
// So the sender sends and queues encrypted bytes, and a write of tls.Conn never waits.
type secure struct {
	*tls.Conn
	by    time.Time // when the handshake must be complete
	ready atomic.Bool

	// Its memory in bytes. These fields belong to the connection's goroutine.
	messages int // of the handshake
	input    int // the largest buffer that it has read into
}

// beneath is the socket as tls.Conn sees it.
type beneath struct {
	net.Conn
	g *Guard
}

// NewTLSGuard returns a guard of a socket whose client speaks TLS. The handshake takes place in the
// first Read.
func NewTLSGuard(
	conn net.Conn, with *tls.Config, limits *config.ConnectionLimits, idle func() time.Duration,
) *Guard {
	g := NewGuard(conn, limits, idle)
	g.tls = &secure{Conn: tls.Server(beneath{conn, g}, with), by: time.Now().Add(HandshakeTime)}
	return g
}

// TLS reports whether the client speaks TLS.
func (g *Guard) TLS() bool { return g.tls != nil }

// Read counts the memory of tls.Conn.
func (b beneath) Read(p []byte) (n int, err error) {
	n, err = b.g.readSocket(p)
	t := b.g.tls
	t.input = max(t.input, len(p))
	if !t.ready.Load() {
		t.messages += n
	}
	if !b.g.countTLS() {
		return 0, errEvicted
	}
	return n, err
}

// Write sends or queues the bytes that tls.Conn has encrypted. It never waits, as tls.Conn holds a
// lock that Push needs.
func (b beneath) Write(p []byte) (int, error) {
	b.g.writing.Lock()
	defer b.g.writing.Unlock()
	b.g.sender.offer(b.g, p, false)
	if err := b.g.sender.err; err != nil {
		return 0, err
	}
	return len(p), nil
}

// SetWriteDeadline does nothing: the sender sets the deadlines of the socket.
func (b beneath) SetWriteDeadline(time.Time) error { return nil }

// countTLS counts the memory of TLS beyond clientmem.TLSSize in the client's account. It reports
// whether the client may continue.
func (g *Guard) countTLS() bool {
	// TLS holds messages as received, in the transcript, and parsed
	before, size := g.Memory.Part(clientmem.TLS), max(0, 3*g.tls.messages+g.tls.input-clientmem.TLSSize)
	alive := g.Memory.Set(clientmem.TLS, size)
	if int64(size) > before && g.Memory.PoolFull() && g.Relieve != nil {
		g.Relieve()
		alive = !g.Memory.Closed()
	}
	return alive
}

// read reads from the client, decrypted.
func (g *Guard) read(p []byte) (int, error) {
	if g.tls != nil {
		return g.tls.Read(p)
	}
	return g.readSocket(p)
}

// handshake performs the TLS handshake, until the deadline that limitWait has set, and calls Admit.
// It returns the error that ends the stream.
func (g *Guard) handshake() error {
	if err := g.tls.Handshake(); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) && g.draining.Load() {
			return io.EOF
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = fmt.Errorf("not complete in time: %w", err)
		}
		return g.leave(&HandshakeError{g.answerPlain(err)})
	}
	g.tls.ready.Store(true)
	g.tls.messages = 0
	for _, certificate := range g.tls.ConnectionState().PeerCertificates {
		g.tls.messages += len(certificate.Raw)
	}
	if !g.countTLS() {
		return errEvicted
	}
	g.timed = true // so that the next wait has its own deadline
	if g.Admit != nil {
		if refusal := g.Admit(); refusal != "" {
			g.Write([]byte("-" + refusal + "\r\n"))
			return g.leave(errRefused)
		}
	}
	return nil
}

// Verified reports whether the client has proven with a certificate who it is. It is for Admit.
func (g *Guard) Verified() bool {
	return g.tls != nil && len(g.tls.ConnectionState().VerifiedChains) > 0
}

// answerPlain sends an error to a client without TLS, and returns a short error for the log.
func (g *Guard) answerPlain(err error) error {
	header, ok := errors.AsType[tls.RecordHeaderError](err)
	if !ok || header.Conn == nil {
		return err
	}
	answer := plainRESPAnswer
	switch string(header.RecordHeader[:]) {
	case "GET /", "HEAD ", "POST ", "PUT /", "OPTIO", "DELET":
		answer, err = plainHTTPAnswer, errors.New("the client speaks HTTP, without TLS")
	default:
		err = errors.New("the client does not speak TLS")
	}
	beneath{g.Conn, g}.Write([]byte(answer))
	return err
}

// encrypt sends or queues p over TLS, without waiting. Any goroutine may call it.
func (g *Guard) encrypt(p []byte) (int, error) {
	if !g.tls.ready.Load() {
		return 0, errNoHandshake
	}
	return g.tls.Write(p)
}

// closeNotify sends the end of the stream to a TLS client, which distinguishes it from a broken
// connection.
func (g *Guard) closeNotify() {
	if g.tls != nil && g.tls.ready.Load() {
		g.tls.CloseWrite()
	}
}
