package mux

import (
	"container/list"
	"net"
	"sync"
)

// maxHandshakes is how many connections may be in their handshake.
const maxHandshakes = 256

// handshakes are the connections that are in their handshake. One too many closes the oldest, not
// the new one: a node is done in a moment, so connections that send nothing do not lock nodes out.
type handshakes struct {
	mu    sync.Mutex
	conns list.List // of net.Conn, the oldest first
}

// begin adds a connection until end is called.
func (h *handshakes) begin(c net.Conn) (end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.conns.PushBack(c)
	if h.conns.Len() > maxHandshakes {
		h.conns.Remove(h.conns.Front()).(net.Conn).Close()
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.conns.Remove(at) // does nothing if it was removed already
	}
}
