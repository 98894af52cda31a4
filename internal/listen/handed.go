package listen

import (
	"context"
	"net"
	"sync"
)

// Handed is a net.Listener of connections that this process has made or accepted itself.
type Handed struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
	addr   net.Addr
}

// NewHanded returns a listener that is open, with the address that Addr returns.
func NewHanded(addr net.Addr) *Handed {
	h := &Handed{conns: make(chan net.Conn), closed: make(chan struct{}), addr: addr}
	h.close = sync.OnceFunc(func() { close(h.closed) })
	return h
}

// Hand waits until Accept returns a connection. The error is net.ErrClosed, or why the context has
// ended.
func (h *Handed) Hand(ctx context.Context, conn net.Conn) error {
	select {
	case h.conns <- conn:
		return nil
	case <-h.closed:
		return net.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Accept implements net.Listener.
func (h *Handed) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Connections that were accepted stay open.
func (h *Handed) Close() error {
	h.close()
	return nil
}

// Addr implements net.Listener.
func (h *Handed) Addr() net.Addr { return h.addr }
