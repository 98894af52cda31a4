package main

import (
	"fmt"
	"math"
	"os"
	"syscall"
)

// What is left of the address space when the program begins. The runtime has reserved its tables by then; threads, their stacks and
// the first arenas come to some hundred MB that no memory stands behind.
const (
	leastSpace = 256 << 20 // without this the runtime ends the process soon
	spareSpace = 512 << 20 // with this beside one and a half times maxmemory it never does
)

// checkAddressSpace tells whether the limit on address space (ulimit -v) leaves room for the server: at its limit the runtime ends the
// process, as no allocation can fail in Go.
func checkAddressSpace(maxmemory int64) (warning string, err error) {
	var space syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_AS, &space) != nil || space.Cur > math.MaxInt64/4 {
		return "", nil
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return "", nil // not on Linux: nothing is known
	}
	var pages int64
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		return "", nil
	}
	return judgeAddressSpace(int64(space.Cur), pages*int64(os.Getpagesize()), maxmemory)
}

// judgeAddressSpace does so for a limit and what is taken of it, in bytes.
func judgeAddressSpace(limit, taken, maxmemory int64) (warning string, err error) {
	const kB = 1 << 10
	if need := taken + leastSpace; limit < need {
		return "", fmt.Errorf("the limit on address space is too low: ulimit -v is %d, and at least %d is needed", limit/kB, need/kB)
	}
	if maxmemory == 0 {
		return "the limit on address space (ulimit -v) ends the process when it is reached: set maxmemory, and ulimit -v unlimited", nil
	}
	if need := taken + spareSpace + maxmemory + maxmemory/2; maxmemory > limit || limit < need {
		return fmt.Sprintf("the limit on address space is too low for maxmemory, and ends the process when it is reached: ulimit -v is %d, and %d is needed",
			limit/kB, need/kB), nil
	}
	return "", nil
}
