package config

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
)

const (
	// MinShare is the minimum of a percentage in bytes: after a tiny maxmemory, a client must still
	// be able to raise it.
	MinShare       = 1 << 20
	assumedMemory  = 4 << 30 // bytes, on a machine that does not report its memory
	errPercent     = valueError("percentage argument must be less or equal to 100")
	errMemoryShare = valueError("argument must be a memory or percent value")
)

// MemoryShare is a number of bytes, or a percentage of maxmemory if it is negative. 0 is no limit.
type MemoryShare int64

// ParseMemoryShare parses a share as CONFIG SET accepts it: 64mb or 20%. The error has the text of
// Redis.
func ParseMemoryShare(value string) (MemoryShare, error) {
	digits, percent := strings.CutSuffix(value, "%")
	if !percent {
		n, err := ParseMemory(value)
		if err != nil {
			return 0, errMemoryShare
		}
		return MemoryShare(n), nil
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	switch {
	case err != nil:
		return 0, errMemoryShare
	case n > 100:
		return 0, errPercent
	}
	return -MemoryShare(n), nil
}

// String returns what ParseMemoryShare reads.
func (m MemoryShare) String() string {
	if m < 0 {
		return fmt.Sprint(int64(-m), "%")
	}
	return fmt.Sprint(int64(m))
}

// of returns the share of a total in bytes, math.MaxInt64 for no limit.
func (m MemoryShare) of(bytes int64) int64 {
	switch {
	case m == 0:
		return math.MaxInt64
	case m < 0:
		return max(MinShare, bytes/100*int64(-m))
	}
	return int64(m)
}

// ClientsLimit returns how many bytes all clients may hold, math.MaxInt64 for no limit. A
// percentage is of maxmemory or, without that, of the machine's memory.
func (s *Settings) ClientsLimit() int64 {
	whole := s.MaxMemory()
	if whole == 0 {
		whole = MachineMemory()
	}
	return MemoryShare(s.clientsShare.Load()).of(whole)
}

// ClientsLimitShown is ClientsLimit as INFO shows it: 0 for no limit.
func (s *Settings) ClientsLimitShown() int64 {
	if limit := s.ClientsLimit(); limit != math.MaxInt64 {
		return limit
	}
	return 0
}

func memoryShare() Value {
	return Value{
		Get: func(s *Settings) string { return MemoryShare(s.clientsShare.Load()).String() },
		Set: func(s *Settings, value string) (func(), error) {
			share, err := ParseMemoryShare(value)
			return func() { s.clientsShare.Store(int64(share)) }, err
		},
	}
}

// MachineMemory returns the memory available to the process, in bytes: that of the machine or, if
// less, the limit of its control group.
var MachineMemory = sync.OnceValue(func() int64 {
	most := int64(assumedMemory)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		_, rest, _ := bytes.Cut(text, []byte("MemTotal:"))
		if kb, err := firstNumber(rest); err == nil {
			most = kb << 10
		}
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if text, err := os.ReadFile(file); err == nil {
			if limit, err := firstNumber(text); err == nil { // the text max is no limit
				most = min(most, limit)
			}
		}
	}
	return most
})

func firstNumber(text []byte) (n int64, err error) {
	_, err = fmt.Sscan(string(text), &n)
	return n, err
}
