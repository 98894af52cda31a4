package mux

import (
	"container/list"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Both sides prove that they know the secret of the nodes, without sending it: each signs the
// header and the random nonces of both with HMAC-SHA256. Who dials proves first: a stranger that
// dials gets nothing to guess the secret by.
//
//	dials    -> header, nonce
//	         <- version, nonce         accepts
//	         -> proof
//	         <- answer, proof with the answer
//
// If the first proof is wrong, the answer is refusedSecret, without a proof. A node of another
// version answers with its version alone and closes the connection. Without a secret the proofs
// show that neither side has one. What follows is neither encrypted nor signed: only TLS protects
// it from a network that changes it.

const (
	nonceSize = 16
	proofSize = sha256.Size
)

// The roles of a proof: one side's cannot be sent back as the other's.
const (
	accepts = 'A'
	dials   = 'D'
)

// proof signs what both sides have sent. answer is that of the side that accepts, and 0 before.
func (p *Port) proof(role byte, header, dialled, answered []byte, answer byte) []byte {
	h := hmac.New(sha256.New, p.options.Secret)
	h.Write([]byte{role, answer})
	h.Write(header)
	h.Write(dialled)
	h.Write(answered)
	return h.Sum(nil)
}

// proveAccepting reports whether the side that has dialled knows the secret, and returns how this
// side proves that it does, with an answer. An error means that the connection has failed.
func (p *Port) proveAccepting(c net.Conn, header []byte) (known bool, own func(answer byte) []byte, err error) {
	var theirs [nonceSize]byte
	if _, err := io.ReadFull(c, theirs[:]); err != nil {
		return false, nil, err
	}
	nonce := newNonce()
	if _, err := c.Write(append([]byte{version}, nonce...)); err != nil {
		return false, nil, err
	}
	var proof [proofSize]byte
	if _, err := io.ReadFull(c, proof[:]); err != nil {
		return false, nil, err
	}
	own = func(answer byte) []byte { return p.proof(accepts, header, theirs[:], nonce, answer) }
	return hmac.Equal(proof[:], p.proof(dials, header, theirs[:], nonce, 0)), own, nil
}

// proveDialling sends the header, proves that this side knows the secret, and returns the answer.
// It returns ErrOtherSecret if one side does not know the secret of the other, and ErrOtherVersion.
// timeout is for each of the two answers.
func (p *Port) proveDialling(c net.Conn, header []byte, timeout time.Duration) (answer byte, err error) {
	own := newNonce()
	c.SetDeadline(time.Now().Add(timeout))
	if _, err := c.Write(append(header, own...)); err != nil {
		return 0, err
	}
	var reply [1 + nonceSize]byte
	if _, err := io.ReadFull(c, reply[:1]); err != nil {
		return 0, err
	}
	if reply[0] != version {
		return 0, fmt.Errorf("%w: that node %d, this one %d. The older one has to be upgraded",
			ErrOtherVersion, reply[0], version)
	}
	if _, err := io.ReadFull(c, reply[1:]); err != nil {
		return 0, err
	}
	c.SetDeadline(time.Now().Add(timeout))
	if _, err := c.Write(p.proof(dials, header, own, reply[1:], 0)); err != nil {
		return 0, err
	}
	var end [1 + proofSize]byte
	if _, err := io.ReadFull(c, end[:1]); err != nil {
		return 0, err
	}
	if end[0] == refusedSecret {
		return 0, ErrOtherSecret
	}
	if _, err := io.ReadFull(c, end[1:]); err != nil {
		return 0, err
	}
	if !hmac.Equal(end[1:], p.proof(accepts, header, own, reply[1:], end[0])) {
		return 0, ErrOtherSecret
	}
	return end[0], nil
}

func newNonce() []byte {
	nonce := make([]byte, nonceSize)
	rand.Read(nonce) // it never fails
	return nonce
}

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
