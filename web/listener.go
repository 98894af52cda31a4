package web

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// listener limits how many connections there are at once, and tells clients of the Redis protocol
// that they have the wrong port.
type listener struct {
	net.Listener
	max       int64
	encrypted bool // a refusal cannot be sent in plain text
	hint      string

	open    atomic.Int64
	refused atomic.Int64
	parting atomic.Int64 // refused connections that are being closed
}

// maxParting is how many refused connections get the reason at once. Others are closed.
const maxParting = 64

// partingTime is how long a refused client may take to read why.
const partingTime = time.Second

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.max {
			return &conn{Conn: c, listener: l}, nil
		}
		l.open.Add(-1)
		l.refused.Add(1)
		l.refuse(c)
	}
}

// refuse closes a connection above the limit, and tells the client why.
func (l *listener) refuse(c net.Conn) {
	if l.encrypted || l.parting.Load() >= maxParting {
		c.Close()
		return
	}
	l.parting.Add(1)
	go func() {
		defer l.parting.Add(-1)
		text := fmt.Sprintf("too many connections: --http-max-clients is %d\n", l.max)
		part(c, fmt.Sprintf("HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n"+
			"Retry-After: 1\r\nConnection: close\r\n\r\n%s", len(text), text))
	}()
}

// part writes a text and closes the connection. It reads what the client has sent, as closing a
// socket that has unread input would reset the connection before the client gets the text.
func part(c net.Conn, text string) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(partingTime))
	if _, err := c.Write([]byte(text)); err != nil {
		return
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		drop := make([]byte, 4<<10)
		for range 16 {
			if _, err := c.Read(drop); err != nil {
				return
			}
		}
	}
}

// conn is a connection that counts.
type conn struct {
	net.Conn
	listener *listener
	seen     bool // its first bytes have been read
	once     sync.Once
}

// Read implements net.Conn. The first bytes of a command of the Redis protocol end the connection.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.seen && n > 0 {
		c.seen = true
		if !c.listener.encrypted && isRESP(b[:n]) {
			part(c.Conn, "-ERR "+c.listener.hint+"\r\n")
			return 0, net.ErrClosed
		}
	}
	return n, err
}

// isRESP reports whether the first bytes of a connection are of the Redis protocol: an array, or an
// inline PING, AUTH, INFO or QUIT. No method of HTTP begins like that.
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

// Close implements net.Conn.
func (c *conn) Close() error {
	c.once.Do(func() { c.listener.open.Add(-1) })
	return c.Conn.Close()
}
