// Package largecopy copies many megabytes in pieces. Go cannot preempt a copy: a process with one
// processor does nothing else meanwhile, and with more the garbage collector waits for it, and so
// do all goroutines. A node of a cluster whose heartbeats are late loses its groups.
package largecopy

import (
	"bytes"
	"slices"
)

// Piece is the size of a piece, in bytes. Copying one takes well below a millisecond.
const Piece = 1 << 20

// Append is append for bytes that may be very many.
func Append(dst, src []byte) []byte {
	if len(src) <= Piece {
		return append(dst, src...)
	}
	return appendPieces(dst, src)
}

// Clone is bytes.Clone for bytes that may be very many.
func Clone(b []byte) []byte {
	if len(b) <= Piece {
		return bytes.Clone(b)
	}
	return appendPieces(make([]byte, 0, len(b)), b)
}

func appendPieces(dst, src []byte) []byte {
	if need := len(dst) + len(src); need > cap(dst) {
		// a few more bytes often follow; many appends must not copy all each time
		dst = appendPieces(make([]byte, 0, max(need+Piece, cap(dst)+cap(dst)/4)), dst)
	}
	for piece := range slices.Chunk(src, Piece) {
		dst = append(dst, piece...)
	}
	return dst
}
