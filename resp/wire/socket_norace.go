//go:build !race

package wire

// maxRaw is the length in bytes that a raw system call may have: it takes some microseconds, for
// which the processor is occupied.
const maxRaw = 16 << 10
