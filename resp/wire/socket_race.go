//go:build race

package wire

// maxRaw is 0: the race detector learns from the calls of package syscall that what is received was
// sent before.
const maxRaw = 0
