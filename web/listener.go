package web

import (
	"bytes"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// listener limits the number of connections, and sends an error to clients of the Redis protocol.
type listener struct {
	net.Listener
	places    *places
	encrypted bool // a refusal cannot be sent in plain text
	hint      func() string
	keepAlive func() net.KeepAliveConfig

	refusing atomic.Int64 // refused connections that are not closed yet
}

// maxRefusing is how many refused connections get a response at the same time. Others are closed at
// once.
const maxRefusing = 64

// refusalTime is how long a refused client may take to read the response.
const refusalTime = time.Second

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if tcp, ok := c.(*net.TCPConn); ok {
			tcp.SetKeepAliveConfig(l.keepAlive())
		}
		if admitted := l.places.admit(c); admitted != nil {
			admitted.listener = l
			return admitted, nil
		}
		l.places.refused.Add(1)
		l.refuse(c)
	}
}

// refuse closes a connection above the limit, after a response with the reason.
func (l *listener) refuse(c net.Conn) {
	if l.encrypted || l.refusing.Load() >= maxRefusing {
		c.Close()
		return
	}
	l.refusing.Add(1)
	go func() {
		defer l.refusing.Add(-1)
		text := l.places.full() + "\n"
		closeWith(
			c,
			fmt.Sprintf("HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"+
				"Retry-After: 1\r\nConnection: close\r\n\r\n%s", len(text), text),
		)
	}()
}

// closeWith writes a text and closes the connection. It reads what the client has sent: otherwise
// closing the socket would reset the connection before the client gets the text.
func closeWith(c net.Conn, text string) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(refusalTime))
	if _, err := c.Write([]byte(text)); err != nil {
		return
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		buffer := make([]byte, 4<<10)
		for range 16 {
			if _, err := c.Read(buffer); err != nil {
				return
			}
		}
	}
}

// Read implements net.Conn. It closes the connection if the first bytes are a command of the Redis
// protocol.
func (c *conn) Read(b []byte) (int, error) {
	if !c.read {
		c.read = true
		c.firstRead()
	}
	n, err := c.Conn.Read(b)
	if !c.started && n > 0 {
		c.started = true
		if !c.listener.encrypted && isRESP(b[:n]) {
			closeWith(c.Conn, "-ERR "+c.listener.hint()+"\r\n")
			return 0, net.ErrClosed
		}
	}
	return n, err
}

// isRESP reports whether a connection begins with the Redis protocol: an array or a common inline
// command. No HTTP method begins like that.
func isRESP(b []byte) bool {
	if b[0] == '*' {
		return true
	}
	word, _, _ := bytes.Cut(b, []byte(" "))
	word = bytes.TrimRight(word, "\r\n")
	for _, inline := range []string{"PING", "AUTH", "INFO", "QUIT", "HELLO"} {
		if bytes.EqualFold(word, []byte(inline)) {
			return true
		}
	}
	return false
}
