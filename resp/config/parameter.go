package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"rlserver/engine"
	"rlserver/resp/grammar"
)

// Parameter is a parameter of CONFIG. Set parses a value and returns a function that puts it into
// force, so that several parameters change together or not at all. Set is nil if the parameter is
// fixed at the start.
type Parameter struct {
	Name  string
	Alias string // another name; empty: none
	Get   func(*Settings) string
	Set   func(s *Settings, value string) (apply func(), err error)
	Inert bool // Set accepts only the current value
}

// valueError is what CONFIG SET says about a value, in Redis' words where it has them.
type valueError string

// Error returns the text.
func (e valueError) Error() string { return string(e) }

const (
	errBoolean   = valueError("argument must be 'yes' or 'no'")
	errInteger   = valueError("argument couldn't be parsed into an integer")
	ErrNotMemory = valueError("argument must be a memory value")
	ErrImmutable = valueError("can't set immutable config")
	ErrDuplicate = valueError("duplicate parameter")
)

// Parameters are all parameters, in the order in which CONFIG GET * returns them.
var Parameters = []Parameter{
	{Name: "bind", Get: func(s *Settings) string { return strings.Join(s.Start.Bind, " ") }},
	{Name: "port", Get: func(s *Settings) string { return strconv.Itoa(s.Start.Port) }},
	{Name: "unixsocket", Get: func(s *Settings) string { return s.Start.UnixSocket }},
	{Name: "unixsocketperm", Get: func(s *Settings) string { return cmp.Or(s.Start.UnixSocketPerm, "0") }},
	{Name: "databases", Get: func(s *Settings) string { return strconv.Itoa(s.Start.Databases) }},
	{Name: "enable-debug-command", Get: func(s *Settings) string { return cmp.Or(s.Start.DebugCommand, "no") }},
	password("requirepass"),
	boolean("protected-mode", func(s *Settings) *atomic.Int64 { return &s.ProtectedMode }),
	clients("maxclients"),
	integer("reserved-clients", "", 0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.ReservedClients }),
	integer("preauth-timeout", "", 0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.preauth }),
	integer("timeout", "", 0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.timeout }),
	integer("tcp-keepalive", "", 0, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.keepalive }),
	logLevel("loglevel"),
	memory(
		"proto-max-bulk-len",
		"",
		1<<20,
		math.MaxInt64,
		func(s *Settings) *atomic.Int64 { return &s.Limits.MaxBulk },
	),
	memory("proto-max-key-len", "", 1, largestMaxKey, func(s *Settings) *atomic.Int64 { return &s.MaxKey }),
	memory(
		"client-query-buffer-limit",
		"",
		MinQuery,
		math.MaxInt64,
		func(s *Settings) *atomic.Int64 { return &s.Limits.MaxQuery },
	),
	integer(
		"hash-max-listpack-entries",
		"hash-max-ziplist-entries",
		0,
		math.MaxInt64,
		func(s *Settings) *atomic.Int64 { return &s.hashEntries },
	),
	memory(
		"hash-max-listpack-value",
		"hash-max-ziplist-value",
		0,
		math.MaxInt64,
		func(s *Settings) *atomic.Int64 { return &s.hashValue },
	),
	integer(
		"zset-max-listpack-entries",
		"zset-max-ziplist-entries",
		0,
		math.MaxInt64,
		func(s *Settings) *atomic.Int64 { return &s.zsetEntries },
	),
	memory(
		"zset-max-listpack-value",
		"zset-max-ziplist-value",
		0,
		math.MaxInt64,
		func(s *Settings) *atomic.Int64 { return &s.zsetValue },
	),

	memory("maxmemory", "", 0, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.maxMemory }),
	memoryShare("maxmemory-clients"),
	memory("preauth-memory", "", 64<<10, math.MaxInt64, func(s *Settings) *atomic.Int64 { return &s.PreauthMemory }),
	outputBufferLimits("client-output-buffer-limit"),
	choice("maxmemory-policy", engine.EvictionPolicies, func(s *Settings) *atomic.Int64 { return &s.memoryPolicy }),
	integer("maxmemory-samples", "", 1, math.MaxInt32, func(s *Settings) *atomic.Int64 { return &s.MemorySamples }),

	{Name: "dir", Get: func(s *Settings) string { return s.Start.Dir }},
	appendOnly("appendonly"),
	choice("appendfsync", fsyncPolicies, func(s *Settings) *atomic.Int64 { return &s.appendFsync }),
	integer(
		"auto-aof-rewrite-percentage",
		"",
		0,
		math.MaxInt32,
		func(s *Settings) *atomic.Int64 { return &s.rewritePercentage },
	),
	memory(
		"auto-aof-rewrite-min-size",
		"",
		0,
		math.MaxInt64,
		func(s *Settings) *atomic.Int64 { return &s.rewriteMinSize },
	),
	savePoints("save"),
	choice("on-disk-failure", failurePolicies, func(s *Settings) *atomic.Int64 { return &s.onDiskFailure }),

	absent("notify-keyspace-events", "", "there are no notifications"),
	absent("slowlog-log-slower-than", "-1", "there is no slow log"),
	absent("latency-monitor-threshold", "0", "latencies are not monitored"),
	absent("activedefrag", "no", "memory is not defragmented"),
	absent("cluster-enabled", "no", "there is no cluster"),
	absent("replica-read-only", "yes", "there are no replicas"),
	absent("tls-port", "0", "there is no TLS"),
}

// Lookup returns the parameter with a name or alias, in any case; nil if there is none.
func Lookup(name string) *Parameter {
	i := slices.IndexFunc(Parameters, func(p Parameter) bool {
		return strings.EqualFold(p.Name, name) || p.Alias != "" && strings.EqualFold(p.Alias, name)
	})
	if i < 0 {
		return nil
	}
	return &Parameters[i]
}

// absent returns a parameter of Redis for a feature that the server does not have. It accepts only
// its current value.
func absent(name, value, without string) Parameter {
	return Parameter{
		Name: name, Inert: true,
		Get: func(*Settings) string { return value },
		Set: func(_ *Settings, given string) (func(), error) {
			if !strings.EqualFold(given, value) {
				return nil, valueError("this server has it at '" + value + "' always: " + without)
			}
			return func() {}, nil
		},
	}
}

func password(name string) Parameter {
	return Parameter{
		Name: name,
		Get:  (*Settings).Password,
		Set: func(s *Settings, value string) (func(), error) {
			return func() { s.password.Store(&value) }, nil
		},
	}
}

func logLevel(name string) Parameter {
	return Parameter{
		Name: name,
		Get:  func(s *Settings) string { return logLevels.name(s.logLevel.Level()) },
		Set: func(s *Settings, value string) (func(), error) {
			for _, known := range logLevels {
				if strings.EqualFold(known.name, value) {
					return func() { s.logLevel.Set(known.level) }, nil
				}
			}
			return nil, valueError("argument(s) must be one of the following: debug, verbose, notice, warning")
		},
	}
}

// choice returns a parameter that is one word of a list. The setting holds the word's index.
func choice(name string, words []string, at func(*Settings) *atomic.Int64) Parameter {
	return Parameter{
		Name: name,
		Get:  func(s *Settings) string { return words[at(s).Load()] },
		Set: func(s *Settings, value string) (func(), error) {
			i := slices.IndexFunc(words, func(word string) bool { return strings.EqualFold(word, value) })
			if i < 0 {
				return nil, valueError("argument(s) must be one of the following: " + strings.Join(words, ", "))
			}
			return func() { at(s).Store(int64(i)) }, nil
		},
	}
}

// appendOnly is fixed at the start: a log that begins later would lack all earlier changes.
func appendOnly(name string) Parameter {
	get := func(s *Settings) string {
		if s.Stored && s.Start.AppendOnly {
			return "yes"
		}
		return "no"
	}
	return Parameter{
		Name: name, Get: get, Inert: true,
		Set: func(s *Settings, value string) (func(), error) {
			value = strings.ToLower(value)
			switch {
			case value != "yes" && value != "no":
				return nil, errBoolean
			case value != get(s):
				return nil, valueError("it cannot change while the server runs: restart it with --appendonly " + value)
			}
			return func() {}, nil
		},
	}
}

func savePoints(name string) Parameter {
	return Parameter{
		Name: name,
		Get: func(s *Settings) string {
			if !s.Stored {
				return ""
			}
			return s.save.Load().String()
		},
		Set: func(s *Settings, value string) (func(), error) {
			list, err := ParseSavePoints(value)
			if err == nil && len(list) > 0 && !s.Stored {
				err = valueError(
					"there are no snapshots, as the data is in memory alone: restart the server with --appendonly yes",
				)
			}
			return func() { s.save.Store(&list) }, err
		},
	}
}

func boolean(name string, at func(*Settings) *atomic.Int64) Parameter {
	return Parameter{
		Name: name,
		Get: func(s *Settings) string {
			if at(s).Load() != 0 {
				return "yes"
			}
			return "no"
		},
		Set: func(s *Settings, value string) (func(), error) {
			switch {
			case strings.EqualFold(value, "yes"):
				return func() { at(s).Store(1) }, nil
			case strings.EqualFold(value, "no"):
				return func() { at(s).Store(0) }, nil
			}
			return nil, errBoolean
		},
	}
}

// clients is the number of connections, limited by the file descriptors of the process.
func clients(name string) Parameter {
	p := integer(name, "", 1, math.MaxUint32, func(s *Settings) *atomic.Int64 { return &s.MaxClients })
	set := p.Set
	p.Set = func(s *Settings, value string) (func(), error) {
		put, err := set(s, value)
		n, _ := grammar.ParseInt([]byte(value))
		if most := s.Start.MostClients; err == nil && most > 0 && n > int64(most) {
			err = valueError(
				fmt.Sprintf(
					"The operating system is not able to handle the specified number of clients, try with %d",
					most,
				),
			)
		}
		return put, err
	}
	return p
}

func integer(name, alias string, least, most int64, at func(*Settings) *atomic.Int64) Parameter {
	return number(name, alias, least, most, at, func(value string) (int64, error) {
		n, ok := grammar.ParseInt([]byte(value))
		if !ok {
			return 0, errInteger
		}
		return n, nil
	})
}

// memory returns a parameter that is a number of bytes, with or without a unit.
func memory(name, alias string, least, most int64, at func(*Settings) *atomic.Int64) Parameter {
	return number(name, alias, least, most, at, ParseMemory)
}

func number(
	name, alias string,
	least, most int64,
	at func(*Settings) *atomic.Int64,
	parse func(string) (int64, error),
) Parameter {
	return Parameter{
		Name: name, Alias: alias,
		Get: func(s *Settings) string { return strconv.FormatInt(at(s).Load(), 10) },
		Set: func(s *Settings, value string) (func(), error) {
			n, err := parse(value)
			if err == nil && (n < least || n > most) {
				err = valueError(fmt.Sprintf("argument must be between %d and %d inclusive", least, most))
			}
			return func() { at(s).Store(n) }, err
		},
	}
}

// units are the units of ParseMemory, as in redis.conf: k is 1000 and kb is 1024.
var units = map[string]int64{
	"": 1, "b": 1, "k": 1e3, "kb": 1 << 10, "m": 1e6, "mb": 1 << 20, "g": 1e9, "gb": 1 << 30,
}

// ParseMemory reads a number of bytes as CONFIG SET takes it: 64mb.
func ParseMemory(value string) (int64, error) {
	digits := strings.TrimRight(strings.ToLower(value), "bkmg")
	unit, known := units[strings.ToLower(value[len(digits):])]
	n, err := strconv.ParseUint(digits, 10, 63)
	if !known || err != nil || int64(n) > math.MaxInt64/unit {
		return 0, ErrNotMemory
	}
	return int64(n) * unit, nil
}
