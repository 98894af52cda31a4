package diagnostics

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"rlserver/internal/grammar"
	"rlserver/resp/config"
)

const (
	maxSlowArgs  = 32       // of an entry
	maxSlowArg   = 128      // bytes of an argument
	maxSlowBytes = 16 << 20 // of all entries
	entrySize    = 256      // bytes of an entry without its texts
	argSize      = 16       // bytes of an argument without its text
)

// SlowCall is an entry of the slow log.
type SlowCall struct {
	ID      int64 // unique until the server restarts
	Time    int64 // end of the call, Unix seconds
	Took    time.Duration
	Args    []string // trimmed
	Address string   // of the client
	Name    string   // of the client
}

func (c *SlowCall) size() int {
	size := entrySize + len(c.Address) + len(c.Name)
	for _, arg := range c.Args {
		size += argSize + len(arg)
	}
	return size
}

// Slowlog holds the latest slow calls. The zero value is ready to use.
type Slowlog struct {
	mu    sync.Mutex
	calls []SlowCall // the oldest first
	bytes int
	next  int64 // ID
}

// Add appends a call, whose ID and Args are not set, and drops the oldest calls above maxLen. words
// is copied.
func (s *Slowlog) Add(call SlowCall, words [][]byte, maxLen int64) {
	call.Args, call.Name = trim(words), trimArg([]byte(call.Name))
	s.mu.Lock()
	defer s.mu.Unlock()
	call.ID = s.next
	s.next++
	s.calls = append(s.calls, call)
	s.bytes += call.size()
	drop := 0
	for ; int64(len(s.calls)-drop) > maxLen || s.bytes > maxSlowBytes; drop++ {
		s.bytes -= s.calls[drop].size()
		s.calls[drop] = SlowCall{}
	}
	s.calls = s.calls[drop:]
}

// trim copies the words of a call. If there are too many, the last one states how many are left
// out.
func trim(words [][]byte) (args []string) {
	for i, word := range words {
		if i == maxSlowArgs-1 && len(words) > maxSlowArgs {
			return append(args, fmt.Sprintf("... (%d more arguments)", len(words)-i))
		}
		args = append(args, trimArg(word))
	}
	return args
}

func trimArg(word []byte) string {
	if len(word) <= maxSlowArg {
		return string(word)
	}
	return fmt.Sprintf("%s... (%d more bytes)", word[:maxSlowArg], len(word)-maxSlowArg)
}

// Last returns the last n calls, or all if n is -1, the newest first.
func (s *Slowlog) Last(n int64) (calls []SlowCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 0 || n > int64(len(s.calls)) {
		n = int64(len(s.calls))
	}
	for i := range int(n) {
		calls = append(calls, s.calls[len(s.calls)-1-i])
	}
	return calls
}

// Len returns the number of calls.
func (s *Slowlog) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

// Reset removes all calls.
func (s *Slowlog) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.bytes = nil, 0
}

// SlowAfter returns the time from which calls are in the slow log.
func SlowAfter(s *config.Settings) time.Duration {
	us := s.SlowlogSlowerThan.Load()
	if us < 0 || us > math.MaxInt64/int64(time.Microsecond) {
		return math.MaxInt64
	}
	return time.Duration(us) * time.Microsecond
}

// SpikeAfter returns the time from which calls are events of LATENCY.
func SpikeAfter(s *config.Settings) time.Duration {
	ms := s.LatencyThreshold.Load()
	if ms == 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}

// AppendCall appends a call as MONITOR shows it. now is Unix ms; address is that of the client.
func AppendCall(b []byte, now int64, db int, address string, words [][]byte) []byte {
	b = append(b, '+')
	b = strconv.AppendInt(b, now/1000, 10)
	b = append(b, '.')
	for unit := int64(100_000); unit > 0; unit /= 10 {
		b = append(b, byte('0'+now%1000*1000/unit%10))
	}
	b = append(b, " ["...)
	b = strconv.AppendInt(b, int64(db), 10)
	b = append(b, ' ')
	b = append(b, address...)
	b = append(b, ']')
	for _, word := range words {
		b = append(b, ' ')
		b = appendQuoted(b, word)
	}
	return append(b, "\r\n"...)
}

// appendQuoted appends a word in quotes, with the escapes of Redis.
func appendQuoted(b, word []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range word {
		switch {
		case c == '\\' || c == '"':
			b = append(b, '\\', c)
		case ' ' <= c && c <= '~':
			b = append(b, c)
		default:
			if i := strings.IndexByte("\n\r\t\a\b", c); i >= 0 {
				b = append(b, '\\', "nrtab"[i])
			} else {
				b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
			}
		}
	}
	return append(b, '"')
}

var redacted = []byte("(redacted)")

// Redacted returns the words of a call, with "(redacted)" in place of passwords. command is the
// name as COMMAND reports it: acl|setuser. Calls without passwords are returned unchanged.
func Redacted(command string, words [][]byte) [][]byte {
	switch command {
	case "auth":
		return hide(words, func(i int) bool { return i > 0 })
	case "hello":
		isAuth := func(i int) bool { return i > 0 && grammar.EqualFold(words[i], "AUTH") }
		return hide(words, func(i int) bool { return isAuth(i-1) || isAuth(i-2) })
	case "acl|setuser":
		return hide(words, func(i int) bool { return i > 1 })
	case "acl|dryrun": // the arguments of another call, which may be AUTH
		return hide(words, func(i int) bool { return i > 3 })
	case "command|getkeys", "command|getkeysandflags":
		return hide(words, func(i int) bool { return i > 2 })
	case "config|set":
		return hide(words, func(i int) bool { return i > 2 && i%2 == 1 && isSecret(words[i-1]) })
	}
	return words
}

func hide(words [][]byte, secret func(i int) bool) [][]byte {
	shown := slices.Clone(words)
	for i := range shown {
		if secret(i) {
			shown[i] = redacted
		}
	}
	return shown
}

// isSecret reports whether a parameter is a password. An unknown one may be: its name is misspelt,
// or of a feature that the server does not have.
func isSecret(name []byte) bool {
	p := config.Lookup(string(name))
	return p == nil || p.Secret
}
