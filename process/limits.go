package process

import (
	"fmt"
	"math"
	"os"
	"syscall"
)

// Address space that must be left when the program starts. The runtime has reserved its tables by
// then. Threads, their stacks and the first arenas take some hundred MB of address space without
// memory behind it.
const (
	leastSpace = 256 << 20 // with less the runtime soon ends the process
	spareSpace = 512 << 20 // with this and one and a half times maxmemory it never does
)

// CheckAddressSpace checks whether the limit on address space (ulimit -v) is high enough for a
// server with this maxmemory, which is in bytes, 0 for none. At the limit the Go runtime ends the
// process, because no allocation can fail in Go. The error says that a server cannot run at all.
// The warning, empty if there is none, says that it may end later.
func CheckAddressSpace(maxmemory int64) (warning string, err error) {
	var space syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &space) != nil || space.Cur > math.MaxInt64/4 {
		return "", nil
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return "", nil // not on Linux: what is used is unknown
	}
	var pages int64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		return "", nil
	}
	return judgeAddressSpace(int64(space.Cur), pages*int64(os.Getpagesize()), maxmemory)
}

// judgeAddressSpace is CheckAddressSpace for a limit and the bytes used of it.
func judgeAddressSpace(limit, used, maxmemory int64) (warning string, err error) {
	const kB = 1 << 10
	if need := used + leastSpace; limit < need {
		return "", fmt.Errorf("the limit on address space is too low: ulimit -v is %d, and at least %d is needed",
			limit/kB, need/kB)
	}
	if maxmemory == 0 {
		return "the limit on address space (ulimit -v) ends the process when it is reached: " +
			"set maxmemory, and ulimit -v unlimited", nil
	}
	if need := used + spareSpace + maxmemory + maxmemory/2; maxmemory > limit || limit < need {
		return fmt.Sprintf("the limit on address space is too low for maxmemory, and ends the process when it is "+
			"reached: ulimit -v is %d, and %d is needed", limit/kB, need/kB), nil
	}
	return "", nil
}

// ownFiles are open files that are not clients' connections: listeners, the log, and what the
// runtime needs.
const ownFiles = 32

// MaxConnections returns how many connections the limit on open files (ulimit -n) allows. The Go
// runtime has raised the soft limit to the hard limit.
func MaxConnections() int {
	var files syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files) != nil || files.Cur > math.MaxInt32 {
		return math.MaxInt32
	}
	return max(1, int(files.Cur)-ownFiles)
}
