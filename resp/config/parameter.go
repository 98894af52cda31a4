package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"rlserver/engine/limit"
	"rlserver/internal/grammar"
	"rlserver/internal/listen"
	"rlserver/internal/logins"
)

// Parameter is a setting: a flag, an environment variable, a line of the configuration file and a
// parameter of CONFIG, all of the same name.
type Parameter struct {
	Name  string
	Alias string // another name; empty: none
	// the heading in --help; empty: the feature is absent, and there is no flag
	Group string
	Form  string // what --help shows for its value
	// a valid value, for errors at the start; empty: the error needs no example
	Example string
	Default string
	Help    string // for --help; line breaks are spaces
	// the form of a line in the configuration file: OneWord, ManyWords, ManyLines or a number
	Words     int
	Secret    bool   // its value is not shown to operators
	StartOnly bool   // unknown to CONFIG GET and SET, as in Redis
	InCluster string // why CONFIG SET cannot change it in a cluster; empty: it can
	Value
}

// The form of a line in the configuration file. A number greater than 0 is the number of words in
// each line; the lines of such a setting add up, and an empty one discards those before.
const (
	OneWord   = 0
	ManyWords = -1
	ManyLines = -2 // the lines add up; in a value they are separated by line ends
)

// Hidden is shown instead of a secret value.
const Hidden = "(hidden)"

// MaxAccessLogLength is the maximum of acllog-max-len: an entry takes at most about 1.5 KB.
const MaxAccessLogLength = 100_000

// channelDefaults are the values of acl-pubsub-default. acl.Settings.AllChannels is the index.
var channelDefaults = []string{"resetchannels", "allchannels"}

// addsUp reports whether the lines of the configuration file that hold the setting add up.
func (p *Parameter) addsUp() bool { return p.Words > 0 || p.Words == ManyLines }

// Join returns the value of several lines or flags.
func (p *Parameter) Join(values []string) string { return strings.Join(values, p.separator()) }

// separator separates two lines in a value.
func (p *Parameter) separator() string {
	if p.Words == ManyLines {
		return "\n"
	}
	return " "
}

// Shown returns the value for operators, with Hidden for a secret that is not empty.
func (p *Parameter) Shown(s *Settings) string {
	value := p.Get(s)
	if p.Effective != nil {
		value = p.Effective(s)
	}
	if p.Secret && value != "" {
		return Hidden
	}
	return value
}

// Value reads and sets a setting. Set and Start parse a value and return a function that applies
// it, so that several settings change together or not at all.
type Value struct {
	Get func(*Settings) string
	// Effective returns the value that applies if Get returns another one, as given; nil: Get
	Effective func(*Settings) string
	// Set is for CONFIG SET; nil: the setting is fixed
	Set   func(s *Settings, value string) (apply func(), err error)
	Start func(s *Settings, value string) (apply func(), err error) // for the start; nil: Set
	// Set accepts only the current value
	Inert bool
	// TLS returns the field of a parameter of TLS; nil for all others
	TLS func(*TLSFiles) *string
	// Ports sets bind or a port to a value that Set has accepted; nil for all others
	Ports func(p *listen.Ports, value string)
}

// valueError is the error of CONFIG SET for a value, with the text of Redis if Redis has one.
type valueError string

func (e valueError) Error() string { return string(e) }

const (
	errBoolean   = valueError("argument must be 'yes' or 'no'")
	errInteger   = valueError("argument couldn't be parsed into an integer")
	ErrNotMemory = valueError("argument must be a memory value")
	ErrImmutable = valueError("can't set immutable config")
	ErrDuplicate = valueError("duplicate parameter")
)

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
	return Parameter{Name: name, Default: value, Value: Value{
		Inert: true,
		Get:   func(*Settings) string { return value },
		Set: func(_ *Settings, given string) (func(), error) {
			if !strings.EqualFold(given, value) {
				return nil, valueError("this server only supports '" + value + "': " + without)
			}
			return func() {}, nil
		},
	}}
}

func password() Value {
	return Value{
		Get: (*Settings).Password,
		Set: func(s *Settings, value string) (func(), error) {
			if value == Hidden {
				return nil, valueError("'" + Hidden + "' is what CONFIG GET shows instead of a password")
			}
			return func() { s.SetPassword(value) }, nil
		},
	}
}

// users returns the value of the lines user of the configuration file. Without an ACL file it also
// returns the current users, for CONFIG REWRITE, with the digests of their passwords.
func users() Value {
	return Value{
		Get: func(s *Settings) string {
			if s.Users != nil && s.Start.ACLFile == "" {
				return strings.Join(s.Users.Defined(), "\n")
			}
			return strings.Join(s.Start.UserLines, "\n")
		},
		Start: func(s *Settings, value string) (func(), error) {
			lines := strings.FieldsFunc(value, func(r rune) bool { return r == '\n' })
			return func() { s.Start.UserLines = lines }, nil
		},
	}
}

// logLevel returns the value of loglevel. The start also takes warn for warning, unlike Redis and
// CONFIG SET.
func logLevel() Value {
	v := Value{
		Get: func(s *Settings) string { return logLevels.name(s.logLevel.Level()) },
		Set: func(s *Settings, value string) (func(), error) {
			for _, known := range logLevels {
				if strings.EqualFold(known.name, value) {
					return func() { s.logLevel.Set(known.level) }, nil
				}
			}
			return nil, valueError("argument(s) must be one of the following: debug, verbose, notice, warning")
		},
	}
	v.Start = func(s *Settings, value string) (func(), error) {
		if strings.EqualFold(value, "warn") {
			value = "warning"
		}
		return v.Set(s, value)
	}
	return v
}

// choice returns a value that is one of several words. The setting holds the word's index.
func choice(words []string, at func(*Settings) *atomic.Int64) Value {
	return Value{
		Get: func(s *Settings) string { return words[at(s).Load()] },
		Set: func(s *Settings, value string) (func(), error) {
			i, err := oneOf(words, value)
			return func() { at(s).Store(int64(i)) }, err
		},
	}
}

// appendOnly returns the value of appendonly, which is fixed at the start: a log that begins later
// would lack all earlier changes.
func appendOnly() Value {
	get := func(s *Settings) string {
		if s.Stored && s.Start.AppendOnly {
			return "yes"
		}
		return "no"
	}
	return Value{
		Get: get, Inert: true,
		Start: func(s *Settings, value string) (func(), error) {
			i, err := oneOf([]string{"yes", "no"}, value)
			return func() { s.Start.AppendOnly = i == 0 }, err
		},
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

func savePoints() Value {
	return Value{
		Get: func(s *Settings) string {
			if !s.Stored {
				return ""
			}
			return s.save.Load().String()
		},
		Set: func(s *Settings, value string) (func(), error) {
			list, err := ParseSavePoints(value)
			if err == nil && len(list) > 0 && !s.Stored {
				err = valueError("there are no snapshots, as the data is only in memory: restart the server with " +
					"--appendonly yes")
			}
			return func() { s.save.Store(&list) }, err
		},
	}
}

func boolean(at func(*Settings) *atomic.Int64) Value {
	v := choice([]string{"no", "yes"}, at)
	set := v.Set
	v.Set = func(s *Settings, value string) (func(), error) {
		put, err := set(s, value)
		if err != nil {
			err = errBoolean
		}
		return put, err
	}
	return v
}

// clients returns the value of maxclients, which is limited by the file descriptors of the process.
func clients() Value {
	v := integer(1, math.MaxUint32, func(s *Settings) *atomic.Int64 { return &s.MaxClients })
	set := v.Set
	v.Set = func(s *Settings, value string) (func(), error) {
		put, err := set(s, value)
		n, _ := grammar.ParseInt([]byte(value))
		if most := s.Start.MaxPossibleClients; err == nil && most > 0 && n > int64(most) {
			const format = "The operating system is not able to handle the specified number of clients, try with %d"
			err = valueError(fmt.Sprintf(format, most))
		}
		return put, err
	}
	return v
}

func integer(least, most int64, at func(*Settings) *atomic.Int64) Value {
	return number(least, most, at, parseInteger)
}

func parseInteger(value string) (int64, error) {
	n, ok := grammar.ParseInt([]byte(value))
	if !ok {
		return 0, errInteger
	}
	return n, nil
}

// memory returns a value that is a number of bytes, with or without a unit.
func memory(least, most int64, at func(*Settings) *atomic.Int64) Value {
	return number(least, most, at, ParseMemory)
}

// duration returns a value that is a duration as calls have them. The setting is in ms.
func duration(at func(*Settings) *atomic.Int64) Value {
	return Value{
		Get: func(s *Settings) string { return limit.DurationText(at(s).Load()) },
		Set: func(s *Settings, value string) (func(), error) {
			ms, ok := limit.ParseDuration([]byte(value))
			if !ok {
				return nil, valueError("argument must be a duration from 1ms to 10 years, such as 30s, 10m or 1h")
			}
			return func() { at(s).Store(ms) }, nil
		},
	}
}

func number(least, most int64, at func(*Settings) *atomic.Int64, parse func(string) (int64, error)) Value {
	return Value{
		Get: func(s *Settings) string { return strconv.FormatInt(at(s).Load(), 10) },
		Set: func(s *Settings, value string) (func(), error) {
			n, err := between(least, most, parse, value)
			return func() { at(s).Store(n) }, err
		},
	}
}

func between(least, most int64, parse func(string) (int64, error), value string) (int64, error) {
	n, err := parse(value)
	if err == nil && (n < least || n > most) {
		err = valueError(fmt.Sprintf("argument must be between %d and %d inclusive", least, most))
	}
	return n, err
}

// fixedInteger, fixedChoice and fixedText return values that are fixed at the start.
func fixedInteger(least, most int64, at func(*Settings) *int) Value {
	return Value{
		Get: func(s *Settings) string { return strconv.Itoa(*at(s)) },
		Start: func(s *Settings, value string) (func(), error) {
			n, err := between(least, most, parseInteger, value)
			return func() { *at(s) = int(n) }, err
		},
	}
}

// clusterGroups returns the value of cluster-groups. What is shown is the number of the cluster, as
// soon as there is one.
func clusterGroups() Value {
	v := fixedInteger(0, 1024, func(s *Settings) *int { return &s.Start.Cluster.Groups })
	v.Effective = func(s *Settings) string {
		if s.ClusterGroups != nil {
			if n := s.ClusterGroups(); n > 0 {
				return strconv.Itoa(n)
			}
		}
		return v.Get(s)
	}
	return v
}

func fixedChoice(words []string, at func(*Settings) *string) Value {
	return Value{
		Get: func(s *Settings) string { return cmp.Or(*at(s), words[0]) },
		Start: func(s *Settings, value string) (func(), error) {
			i, err := oneOf(words, value)
			return func() { *at(s) = words[i] }, err
		},
	}
}

func fixedText(at func(*Settings) *string) Value {
	return Value{
		Get:   func(s *Settings) string { return *at(s) },
		Start: func(s *Settings, value string) (func(), error) { return func() { *at(s) = value }, nil },
	}
}

// oneOf returns the index of a word, in any case.
func oneOf(words []string, value string) (int, error) {
	for i, word := range words {
		if strings.EqualFold(word, value) {
			return i, nil
		}
	}
	return 0, valueError("argument(s) must be one of the following: " + strings.Join(words, ", "))
}

// addresses returns a value that is a list of addresses, separated by spaces or commas.
func addresses(at func(*Settings) *[]string) Value {
	return Value{
		Get: func(s *Settings) string { return strings.Join(*at(s), " ") },
		Start: func(s *Settings, value string) (func(), error) {
			return func() { *at(s) = splitAddresses(value) }, nil
		},
	}
}

// networks returns the value of login-failures-exempt.
func networks(at func(*Settings) *logins.Settings) Value {
	return Value{
		Get: func(s *Settings) string { return at(s).Exempt() },
		Set: func(s *Settings, value string) (func(), error) {
			list, err := logins.ParseNetworks(value)
			if err != nil {
				return nil, valueError(err.Error())
			}
			return func() { at(s).SetExempt(list) }, nil
		},
	}
}

// socketMode returns the value of the permissions of the Unix socket. As in Redis, 0 leaves them to
// the umask.
func socketMode() Value {
	return Value{
		Get: func(s *Settings) string { return cmp.Or(s.Start.UnixSocketPerm, "0") },
		Start: func(s *Settings, value string) (func(), error) {
			bits, err := strconv.ParseUint(cmp.Or(value, "0"), 8, 9)
			if err != nil {
				return nil, valueError("argument must be octal permissions")
			}
			if bits == 0 {
				value = ""
			}
			return func() { s.Start.UnixSocketPerm = value }, nil
		},
	}
}

// units are the units of ParseMemory, as in redis.conf: k is 1000 and kb is 1024.
var units = map[string]int64{
	"": 1, "b": 1, "k": 1e3, "kb": 1 << 10, "m": 1e6, "mb": 1 << 20, "g": 1e9, "gb": 1 << 30,
}

// ParseMemory parses a number of bytes as CONFIG SET accepts it: 64mb.
func ParseMemory(value string) (int64, error) {
	digits := strings.TrimRight(strings.ToLower(value), "bkmg")
	unit, known := units[strings.ToLower(value[len(digits):])]
	n, err := strconv.ParseUint(digits, 10, 63)
	if !known || err != nil || int64(n) > math.MaxInt64/unit {
		return 0, ErrNotMemory
	}
	return int64(n) * unit, nil
}
