package command

import (
	"rlserver/resp/grammar"
	"slices"
	"strings"
)

// Command is the one declaration of a command. Everything in it is used on every call or told to clients: the arity rejects, the keys choose
// the locks, the write flag decides whether anything may change; and COMMAND, COMMAND DOCS, COMMAND GETKEYS, the hints of redis-cli and
// docs/COMMANDS.md are read off it.
type Command struct {
	Name       string // in lower case; of a subcommand its own word alone
	Syntax     string // the arguments in the notation of Redis' manual, see syntax.go
	Arity      int    // how many words a call has, the name included; -n: n or more
	Flags      Flags
	Keys       []KeySpec
	HashKeys   func(h *Hasher, words [][]byte) // of a command that makes its keys' names of its words; keys tells clients how to route it
	Group      string                          // of the manual: generic, string, bitmap, hash, sorted-set, connection, server, ratelimit
	Since      string                          // the version of Redis, or of this server for its own commands, that brought it
	Complexity string
	Summary    string
	Example    string // a call and its reply, for docs/COMMANDS.md
	Categories string // of access lists, beyond those that group and flags imply, separated by spaces
	Tips       string // for clients and proxies, separated by spaces
	Deprecated string // since which version, and in replacedBy what to use instead
	ReplacedBy string
	Prepare    func(c *Call, words [][]byte) // what can be done before the locks are taken; not of what EXEC runs
	Reaches    func(words [][]byte) bool     // of a command that may look at keys that its words do not name: whether a call does
	Run        func(*Call) error
	Subs       []*Command

	parent *Command // of a subcommand
	Index  int      // a number of its own
}

// Flags are what COMMAND tells of a command, and what dispatch goes by.
type Flags uint32

const (
	Write       Flags = 1 << iota // may change the keyspace
	Readonly                      // looks at it
	DenyOOM                       // may make it larger
	Admin                         // for operators
	Fast                          // takes constant or logarithmic time
	Loading                       // answers while data is being loaded
	Stale                         // answers on a replica that lost its primary
	NoScript                      // not from scripts
	NoAuth                        // before authentication
	NoMulti                       // not within MULTI
	skipMonitor                   // not shown to MONITOR
	SkipSlowlog                   // not in the slow log
	NoAsyncLoading
	AllowBusy       // answers while a script runs for too long
	noMandatoryKeys // may be called without keys
	Blocking        // may hold the connection until something happens
	MovableKeys     // keys cannot be found by first, last and step alone
	WholeKeyspace   // not told to clients: locks every shard
	Stepwise        // not told to clients: locks one shard after the other, unless it is within a transaction, which then locks them all
	Immediate       // not told to clients: runs within MULTI too, where others are queued
	Health          // not told to clients: says whether the server is well, so that it is refused as writes are when the disk fails
	OwnLocks        // not told to clients: cannot run under the locks of a transaction, as it takes locks itself or takes its time
)

var flagNames = []struct {
	flag Flags
	name string
}{
	{Write, "write"}, {Readonly, "readonly"}, {DenyOOM, "denyoom"}, {Admin, "admin"}, {NoScript, "noscript"},
	{Loading, "loading"}, {Stale, "stale"}, {skipMonitor, "skip_monitor"}, {SkipSlowlog, "skip_slowlog"}, {Fast, "fast"}, {NoAuth, "no_auth"},
	{noMandatoryKeys, "no_mandatory_keys"}, {NoAsyncLoading, "no_async_loading"}, {NoMulti, "no_multi"},
	{Blocking, "blocking"}, {MovableKeys, "movablekeys"}, {AllowBusy, "allow_busy"},
}

// KeySpec says where keys stand among the words of a call.
type KeySpec struct {
	Access   string // in Redis' words, e.g. "RW access update"
	Begin    int    // index of the first key, or of the number of keys
	Last     int    // index of the last key relative to begin; negative: from the end of the call
	Step     int    // from one key to the next
	Counted  bool   // begin is the number of keys, which follow it
	Patterns bool   // keys are made of patterns in the call and of what other keys hold: nobody can tell which
	Token    string // the key is the word behind this one
	rules    bool   // from begin on stand rules of RL.ALL, each with a key at its beginning

	variable func(words [][]byte) (access string) // the access of one call, where its options decide; nil: as access says
}

// Key is the specification of one key at an index.
func Key(access string, at int) KeySpec { return KeySpec{Access: access, Begin: at, Step: 1} }

// KeyVariable is the specification of one key whose access depends on the options of the call.
func KeyVariable(access string, at int, variable func(words [][]byte) string) KeySpec {
	return KeySpec{Access: access + " variable_flags", Begin: at, Step: 1, variable: variable}
}

// accessOf is how a call uses the keys.
func (k *KeySpec) accessOf(words [][]byte) string {
	if k.variable != nil {
		return k.variable(words)
	}
	return k.Access
}

// KeysToEnd is that of keys from an index to the end, each step words after the one before.
func KeysToEnd(access string, from, step int) KeySpec {
	return KeySpec{Access: access, Begin: from, Last: -1, Step: step}
}

// KeysCounted is that of a number of keys at an index, followed by as many keys.
func KeysCounted(access string, at int) KeySpec {
	return KeySpec{Access: access, Begin: at, Step: 1, Counted: true}
}

// KeysOfRules is that of the keys at the beginning of rules, from an index on.
func KeysOfRules(access string, from int) KeySpec {
	return KeySpec{Access: access, Begin: from, Step: 1, rules: true}
}

// positions yields the indexes of the keys in a call. Of a call that is cut short or whose number of keys makes no sense it yields
// those that can be made out; the handler finds what is wrong.
func (k KeySpec) positions(words [][]byte, yield func(int)) {
	switch {
	case k.Patterns:
		return
	case k.Token != "":
		for i := len(words) - 2; i > 0; i-- { // the last one counts
			if grammar.EqualFold(words[i], k.Token) {
				yield(i + 1)
				return
			}
		}
		return
	}
	if k.rules {
		for i := k.Begin; i < len(words) && BeginsRule(words[i:]); i += RuleLength(words[i:]) {
			yield(i)
		}
		return
	}
	first, last := k.Begin, k.Begin+k.Last
	if k.Last < 0 {
		last = len(words) + k.Last
	}
	if k.Counted {
		if k.Begin >= len(words) {
			return
		}
		n, ok := grammar.ParseInt(words[k.Begin])
		if !ok || n <= 0 {
			return
		}
		first = k.Begin + 1
		last = first + int(min(n, int64(len(words)))) - 1
	}
	for i := first; i <= last && i < len(words); i += k.Step {
		yield(i)
	}
}

// FullName is the name as COMMAND tells it: client|list.
func (c *Command) FullName() string {
	if c.parent != nil {
		return c.parent.Name + "|" + c.Name
	}
	return c.Name
}

func (c *Command) Rejects(words int) bool {
	return c.Arity >= 0 && words != c.Arity || words < -c.Arity
}

// table holds all commands by name.
type table map[string]*Command

var Commands = make(table)

// Declared is how many commands there are, with their subcommands: the next one's index.
var Declared int

// The families declare themselves: each file of commands/* registers its entries.
func Register(family ...*Command) {
	for _, c := range family {
		if _, twice := Commands[c.Name]; twice {
			panic("resp: command declared twice: " + c.Name)
		}
		Commands[c.Name] = c
		c.Index = Declared
		Declared++
		for _, sub := range c.Subs {
			sub.parent, sub.Index = c, Declared
			Declared++
		}
	}
}

// Find looks a name up, in any case, without allocating.
func (t table) Find(name []byte) *Command {
	var buf [32]byte
	if len(name) > len(buf) {
		return nil
	}
	lower := buf[:len(name)]
	for i, c := range name {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return t[string(lower)]
}

// Sub finds a subcommand by its word.
func (c *Command) Sub(word []byte) *Command {
	i := slices.IndexFunc(c.Subs, func(s *Command) bool { return strings.EqualFold(s.Name, string(word)) })
	if i < 0 {
		return nil
	}
	return c.Subs[i]
}

// JoinsOthers tells whether calls of a command may be run under one hold with others: they have keys, take little time and leave the session as
// it is.
func (c *Command) JoinsOthers() bool {
	return c.Flags&Fast != 0 && len(c.Keys) > 0 && c.Flags&(WholeKeyspace|Stepwise|Immediate|OwnLocks) == 0
}
