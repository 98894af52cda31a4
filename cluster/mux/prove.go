package mux

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
)

// Both sides prove that they know the secret of the nodes, without sending it: each signs the
// header and the random nonces of both with HMAC-SHA256.
//
//	dials    -> header, nonce
//	         <- version, nonce, proof    accepts
//	         -> proof
//	         <- answer
//
// A node of another version answers with its version alone and closes the connection. Without a
// secret the proofs show that neither side has one. What follows is neither encrypted nor signed:
// only TLS protects it from a network that changes it.

const (
	nonceSize = 16
	proofSize = sha256.Size
)

// The roles of a proof: one side's cannot be sent back as the other's.
const (
	accepts = 'A'
	dials   = 'D'
)

func (p *Port) proof(role byte, header, dialled, answered []byte) []byte {
	h := hmac.New(sha256.New, p.options.Secret)
	h.Write([]byte{role})
	h.Write(header)
	h.Write(dialled)
	h.Write(answered)
	return h.Sum(nil)
}

// proveAccepting proves that this side knows the secret, and reports whether the side that has
// dialled knows it. An error means that the connection has failed.
func (p *Port) proveAccepting(c net.Conn, header []byte) (known bool, err error) {
	var theirs [nonceSize]byte
	if _, err := io.ReadFull(c, theirs[:]); err != nil {
		return false, err
	}
	own := newNonce()
	reply := append([]byte{version}, own...)
	if _, err := c.Write(append(reply, p.proof(accepts, header, theirs[:], own)...)); err != nil {
		return false, err
	}
	var proof [proofSize]byte
	if _, err := io.ReadFull(c, proof[:]); err != nil {
		return false, err
	}
	return hmac.Equal(proof[:], p.proof(dials, header, theirs[:], own)), nil
}

// proveDialling sends the header, and proves that this side knows the secret. It returns
// ErrOtherSecret if the other side does not know it, and ErrOtherVersion if it has none.
func (p *Port) proveDialling(c net.Conn, header []byte) error {
	own := newNonce()
	if _, err := c.Write(append(header, own...)); err != nil {
		return err
	}
	var reply [1 + nonceSize + proofSize]byte
	if _, err := io.ReadFull(c, reply[:1]); err != nil {
		return err
	}
	if reply[0] != version {
		return fmt.Errorf("%w: that node %d, this one %d. The older one has to be upgraded",
			ErrOtherVersion, reply[0], version)
	}
	if _, err := io.ReadFull(c, reply[1:]); err != nil {
		return err
	}
	theirs, proof := reply[1:1+nonceSize], reply[1+nonceSize:]
	if !hmac.Equal(proof, p.proof(accepts, header, own, theirs)) {
		return ErrOtherSecret
	}
	_, err := c.Write(p.proof(dials, header, own, theirs))
	return err
}

func newNonce() []byte {
	nonce := make([]byte, nonceSize)
	rand.Read(nonce) // it never fails
	return nonce
}
