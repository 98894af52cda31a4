package config

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"rlserver/internal/grammar"
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

// ClientClass is a kind of client with an output buffer limit of its own.
type ClientClass int32

const (
	Unauthenticated ClientClass = iota // its limit is fixed: PreauthOutputLimit
	NormalClient
	replicaClient // no such clients: the limit is only for CONFIG
	PubSubClient  // a client that has subscribed
	clientClasses
)

// configuredClasses has the names and the default limits of Redis, in the order of
// client-output-buffer-limit.
var configuredClasses = [clientClasses]struct {
	name, alias string
	limit       OutputLimit
}{
	NormalClient:  {"normal", "normal", OutputLimit{Hard: 64 << 20, Soft: 16 << 20, Seconds: 60}},
	replicaClient: {"slave", "replica", OutputLimit{Hard: 256 << 20, Soft: 64 << 20, Seconds: 60}},
	PubSubClient:  {"pubsub", "pubsub", OutputLimit{Hard: 32 << 20, Soft: 8 << 20, Seconds: 60}},
}

const (
	// PreauthOutputLimit is the limit on unread replies of a client that has not authenticated, in
	// bytes.
	PreauthOutputLimit = 64 << 10
	// MaxUnread is the size of unread replies in bytes above which the commands of a client wait,
	// whatever the limits.
	MaxUnread = 1 << 30
)

// OutputLimit limits the bytes of replies that a client may leave unread. 0 is no limit.
type OutputLimit struct {
	Hard    int64 // a client above this is closed at once
	Soft    int64 // a client that is above this for Seconds is closed
	Seconds int64
}

// outputLimits are the limits of all classes. A value is immutable.
type outputLimits [clientClasses]OutputLimit

func defaultOutputLimits() *outputLimits {
	l := &outputLimits{Unauthenticated: {Hard: PreauthOutputLimit}}
	for class := NormalClient; class < clientClasses; class++ {
		l[class] = configuredClasses[class].limit
	}
	return l
}

const (
	errOutputWords  = valueError("Wrong number of arguments in buffer limit configuration.")
	errOutputClass  = valueError("Invalid client class specified in buffer limit configuration.")
	errOutputNumber = valueError("Error in hard, soft or soft_seconds setting in buffer limit configuration.")
)

// with returns a copy of the limits with the changes in text: one or more classes as in "normal
// 64mb 16mb 60". The error has the text of Redis.
func (l *outputLimits) with(text string) (*outputLimits, error) {
	changed := *l
	if text == "" {
		return &changed, nil
	}
	words := strings.Split(text, " ")
	if len(words)%4 != 0 {
		return nil, errOutputWords
	}
	for ; len(words) > 0; words = words[4:] {
		class := classNamed(words[0])
		if class == Unauthenticated {
			return nil, errOutputClass
		}
		hard, err := ParseMemory(words[1])
		soft, err2 := ParseMemory(words[2])
		seconds, ok := grammar.ParseInt([]byte(words[3]))
		if err != nil || err2 != nil || !ok || seconds < 0 || seconds > math.MaxInt32 {
			return nil, errOutputNumber
		}
		changed[class] = OutputLimit{hard, soft, seconds}
	}
	return &changed, nil
}

// classNamed returns the class with a name, or Unauthenticated if there is none.
func classNamed(name string) ClientClass {
	for class := NormalClient; class < clientClasses; class++ {
		if c := &configuredClasses[class]; strings.EqualFold(name, c.name) || strings.EqualFold(name, c.alias) {
			return class
		}
	}
	return Unauthenticated
}

// String returns the limits as CONFIG GET shows them.
func (l *outputLimits) String() string {
	var words []string
	for class := NormalClient; class < clientClasses; class++ {
		words = append(words,
			fmt.Sprint(configuredClasses[class].name, " ", l[class].Hard, " ", l[class].Soft, " ", l[class].Seconds))
	}
	return strings.Join(words, " ")
}

func outputBufferLimits() Value {
	at := func(s *Settings) *atomic.Pointer[outputLimits] { return &s.Limits.Output }
	return Value{
		Get: func(s *Settings) string { return at(s).Load().String() },
		Set: func(s *Settings, value string) (func(), error) {
			changed, err := at(s).Load().with(value)
			return func() { at(s).Store(changed) }, err
		},
	}
}
