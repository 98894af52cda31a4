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
	defaultPreauthMemory = 4 << 20
	MinShare             = 1 << 20 // of a percentage: whoever has set maxmemory to next to nothing must be able to set it back
	assumedMemory        = 4 << 30 // of a machine that does not say how much it has
	errPercent           = valueError("percentage argument must be less or equal to 100")
	errMemoryShare       = valueError("argument must be a memory or percent value")
)

// MemoryShare is a number of bytes, or a percentage of maxmemory.
type MemoryShare int64 // 0 or more: bytes; less: so many percent

// ParseMemoryShare reads a share as CONFIG SET takes it: 64mb or 20%. The error names what is wrong.
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

func (m MemoryShare) String() string {
	if m < 0 {
		return fmt.Sprint(int64(-m), "%")
	}
	return fmt.Sprint(int64(m))
}

// of is the share of so many bytes.
func (m MemoryShare) of(bytes int64) int64 {
	switch {
	case m == 0:
		return math.MaxInt64
	case m < 0:
		return max(MinShare, bytes/100*int64(-m))
	}
	return int64(m)
}

// clientsLimit is how many bytes all clients may hold: a percentage is of maxmemory or, without that, of the machine's memory.
func (s *Settings) ClientsLimit() int64 {
	whole := s.MaxMemory()
	if whole == 0 {
		whole = MachineMemory()
	}
	return MemoryShare(s.clientsShare.Load()).of(whole)
}

// clientsLimitShown is clientsLimit in INFO: 0 for any amount.
func (s *Settings) ClientsLimitShown() int64 {
	if limit := s.ClientsLimit(); limit != math.MaxInt64 {
		return limit
	}
	return 0
}

func memoryShare(name string) Parameter {
	return Parameter{
		Name: name,
		Get:  func(s *Settings) string { return MemoryShare(s.clientsShare.Load()).String() },
		Set: func(s *Settings, value string) (func(), error) {
			share, err := ParseMemoryShare(value)
			return func() { s.clientsShare.Store(int64(share)) }, err
		},
	}
}

// machineMemory is how much memory the process may have: what the machine has or, if that is less, what its control group allows.
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
			if limit, err := firstNumber(text); err == nil { // else it says max
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
