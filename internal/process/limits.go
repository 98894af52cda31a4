package process

import (
	"fmt"
	"math"
	"os"
	"syscall"
)

// Address space that must be free at the start, in addition to what the runtime has reserved for
// its tables by then. Threads, their stacks and the first arenas take a few hundred MB of address
// space without memory behind it.
const (
	minSpace    = 256 << 20 // with less the process soon ends
	enoughSpace = 512 << 20 // with this plus one and a half times maxmemory it does not
)

// minLimit is the least limit on address space that a server is started with, in bytes. Below it
// the Go runtime may end the process while it starts; below 750 MB it does so before any check can
// run, and below 1.4 GB it may.
const minLimit = 2 << 30

// CheckStart refuses a limit on address space (ulimit -v) that is too low to start a server. It is
// called first of all, before more threads need address space.
func CheckStart() error {
	var space syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &space) != nil {
		return nil
	}
	return checkStart(space.Cur)
}

// checkStart is CheckStart with the limit, in bytes.
func checkStart(limit uint64) error {
	const kB = 1 << 10
	if limit >= minLimit {
		return nil
	}
	return fmt.Errorf("the limit on address space is too low: ulimit -v is %d, and at least %d is needed; "+
		"limit memory with --maxmemory and MemoryMax of systemd instead", limit/kB, int64(minLimit)/kB)
}

// CheckAddressSpace checks whether the limit on address space (ulimit -v) is high enough for a
// server with this maxmemory, in bytes; 0: no limit. At the limit the Go runtime ends the process,
// because no allocation can fail in Go. The error means that a server cannot run at all, the
// warning that the process may end later.
func CheckAddressSpace(maxmemory int64) (warning string, err error) {
	var space syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &space) != nil || space.Cur > math.MaxInt64/4 {
		return "", nil
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return "", nil // not on Linux: the used space is unknown
	}
	var pages int64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		return "", nil
	}
	return checkAddressSpace(int64(space.Cur), pages*int64(os.Getpagesize()), maxmemory)
}

// checkAddressSpace is CheckAddressSpace with the limit and the used space, in bytes.
func checkAddressSpace(limit, used, maxmemory int64) (warning string, err error) {
	const kB = 1 << 10
	if need := used + minSpace; limit < need {
		return "", fmt.Errorf("the limit on address space is too low: ulimit -v is %d, and at least %d is needed",
			limit/kB, need/kB)
	}
	if maxmemory == 0 {
		return "the limit on address space (ulimit -v) ends the process when it is reached: " +
			"set maxmemory, and ulimit -v unlimited", nil
	}
	if need := used + enoughSpace + maxmemory + maxmemory/2; maxmemory > limit || limit < need {
		return fmt.Sprintf("the limit on address space is too low for maxmemory, and ends the process when it is "+
			"reached: ulimit -v is %d, and %d is needed", limit/kB, need/kB), nil
	}
	return "", nil
}

// ownFiles is the number of open files that are not connections of clients: listeners, the log, and
// files of the runtime.
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
