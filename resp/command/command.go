package command

import (
	"cmp"
	"slices"
	"strings"

	"rlserver/engine"
	"rlserver/internal/acl"
	"rlserver/internal/grammar"
)

// Command is the declaration of a command. See the package comment.
type Command struct {
	Name  string // in lower case; of a subcommand without its parent
	Arity int    // number of words in a call, including the name; -n: n or more
	Flags Flags
	Keys  []KeySpec
	// for a command that builds the names of its keys; Keys then only tell clients how to route it
	HashKeys func(h *Hasher, words [][]byte)
	// of the manual: generic, string, bitmap, hash, sorted-set, connection, server, ratelimit
	Group      string
	Channels   Channels // which arguments are channels
	Categories string   // access categories that group and flags do not imply, separated by spaces

	// What Redis' manual says of the command. It is recorded, see Quoted: declarations only say
	// what differs from Redis 7.0.15, and all for commands that it does not have.
	Syntax     string // the arguments in the notation of the manual, see syntax.go
	Since      string // the version of Redis, or of this server for its own commands
	Complexity string
	Summary    string
	Tips       string // for clients and proxies, separated by spaces
	DocFlags   string // of COMMAND DOCS, separated by spaces: deprecated, syscmd
	Deprecated string // since which version; ReplacedBy says what to use instead
	ReplacedBy string

	Prepare func(c *Call, words [][]byte) // runs before the locks are taken, except in EXEC
	// does what takes long for all calls of a transaction, before EXEC takes the locks. release is
	// called when they have run. An error ends the transaction.
	Ahead func(c *Call, calls []Prepared) (release func(), err error)
	// returns the flags of a call that its words decide, instead of Flags: whether CLIENT PAUSE
	// holds it back; nil: they are Flags
	FlagsOf func(env *Env, words [][]byte) Flags
	// reports whether a call reads keys that its words do not name; nil: none does
	Reaches func(words [][]byte) bool
	// returns the index of the first option of a call, from which on each option has a value; nil:
	// options are not asked for
	Options func(words [][]byte) int
	// reports whether a call has no further effect when it is sent again, whatever the server
	// holds; nil: it may have
	CountsOnce func(words [][]byte) bool
	// of a command on the whole keyspace that runs on each group of a cluster: merges the replies;
	// nil: such a command is refused there
	Merge func(*Merger)
	// returns the error of a call that a cluster refuses, or nil; nil: it refuses none
	Refused func(words [][]byte) error
	// the error of the command within a transaction, in a cluster; nil: it may be part of one
	RefusedInMulti error
	Short          bool // takes constant time, though Redis does not call it fast
	OnFirstGroup   bool // without keys: what it is about is in the first group of a cluster
	// of such a command: the key where it runs instead or, if that is nil, the group. The engine
	// has the policies
	RunsAt func(e *engine.Engine, words [][]byte) (key []byte, group int)
	Run    func(*Call) error
	Subs   []*Command
	// access rules take subcommands as first arguments and COMMAND does not list them, as in Redis:
	// of DEBUG
	SubsAreArguments bool

	parent *Command // of a subcommand
	upper  string   // the name in upper case, as most clients send it
	Index  int      // unique

	onlyKey int  // the index of the key if there is always exactly one, else 0
	plain   bool // to resolve a call is to check the number of its words
}

// Flags are the flags that COMMAND reports, and some that only this server uses.
type Flags uint32

const (
	Write       Flags = 1 << iota // may change the keyspace
	Readonly                      // reads the keyspace
	DenyOOM                       // may take memory
	Admin                         // for operators
	Fast                          // takes constant or logarithmic time
	Loading                       // runs while data is being loaded
	Stale                         // runs on a replica that has lost its primary
	NoScript                      // not from scripts
	NoAuth                        // before authentication
	NoMulti                       // not within MULTI
	SkipMonitor                   // not shown to MONITOR
	SkipSlowlog                   // not in the slow log
	NoAsyncLoading
	AllowBusy       // runs while a script runs for too long
	NoMandatoryKeys // may be called without keys
	Blocking        // may block the connection
	MovableKeys     // keys cannot be found by first, last and step alone
	WholeKeyspace   // not reported: locks every shard
	Stepwise        // not reported: locks one shard after the other; within a transaction, all
	Immediate       // not reported: runs within MULTI too, where others are queued
	Health          // not reported: a health check, refused like writes when the disk fails
	PubSub          // about channels
	WhileSubscribed // not reported: runs while a client with RESP2 has subscribed to something
	OwnLocks        // not reported: takes locks itself, or is slow: cannot run in a transaction
	AnyKeys         // not reported: runs scripts, which with lua-undeclared-keys may use any key
	MayChange       // not reported: may change keys or scripts, or publishes, though it is no Write

	// Changing is what all commands have one of that may have an effect on others.
	Changing = Write | MayChange
)

var flagNames = []struct {
	flag Flags
	name string
}{
	{Write, "write"}, {Readonly, "readonly"}, {DenyOOM, "denyoom"}, {Admin, "admin"}, {NoScript, "noscript"},
	{Loading, "loading"}, {Stale, "stale"}, {SkipMonitor, "skip_monitor"}, {SkipSlowlog, "skip_slowlog"},
	{Fast, "fast"}, {NoAuth, "no_auth"}, {NoMandatoryKeys, "no_mandatory_keys"},
	{NoAsyncLoading, "no_async_loading"}, {NoMulti, "no_multi"},
	{Blocking, "blocking"}, {MovableKeys, "movablekeys"}, {AllowBusy, "allow_busy"}, {PubSub, "pubsub"},
}

// Channels says which arguments of a command are channels that the user must be allowed to access.
type Channels uint8

const (
	NoChannels      Channels = iota
	OneChannel               // the first argument
	AllChannels              // all arguments
	ChannelPatterns          // all arguments, which are patterns: only an equal pattern allows one
)

// notKey is the access of a word that is routed like a key in a cluster, and is none: a shard
// channel.
const notKey = "not_key"

// KeySpec specifies which words of a call are keys.
type KeySpec struct {
	Access string // in Redis' words, e.g. "RW access update"
	Begin  int    // index of the first key, or of the number of keys
	// index of the last key relative to begin; negative: from the end of the call
	Last     int
	Step     int        // from one key to the next
	Counted  bool       // begin is the number of keys, which follow it
	Patterns bool       // keys depend on patterns in the call and on the data
	Token    string     // the key is the word after this one
	bits     acl.Access // Access for access rules; set by Register

	// finds the first key at an index or behind it, and where the search for another one continues;
	// 0: there is none. nil: the fields above say where the keys are
	next func(words [][]byte, at int) (key, behind int)

	// the access of one call, if its options decide; nil: Access
	variable func(words [][]byte) (access string)
}

// Key returns the specification of one key at an index.
func Key(access string, at int) KeySpec { return KeySpec{Access: access, Begin: at, Step: 1} }

// OneKey returns the specification of a command whose first argument is its only key.
func OneKey(access string) []KeySpec { return []KeySpec{Key(access, 1)} }

// OnKey returns the declaration of a command whose first argument is its only key.
func OnKey(name string, arity int, flags Flags, access string, run func(*Call) error) *Command {
	return &Command{Name: name, Arity: arity, Flags: flags, Keys: OneKey(access), Run: run}
}

// With returns the handler of one of several commands that run handles.
func With[T any](run func(*Call, T) error, with T) func(*Call) error {
	return func(c *Call) error { return run(c, with) }
}

// KeyVariable returns the specification of one key whose access depends on the options of the call.
func KeyVariable(access string, at int, variable func(words [][]byte) string) KeySpec {
	return KeySpec{Access: access + " variable_flags", Begin: at, Step: 1, variable: variable}
}

// single returns the index of the key if there is always exactly one, else 0.
func (k *KeySpec) single() int {
	if k.Last != 0 || k.Counted || k.next != nil {
		return 0
	}
	return k.Begin
}

// accessOf returns how a call uses the keys.
func (k *KeySpec) accessOf(words [][]byte) string {
	if k.variable != nil {
		return k.variable(words)
	}
	return k.Access
}

// KeysToEnd returns the specification of the keys from an index to the end, step words apart.
func KeysToEnd(access string, from, step int) KeySpec {
	return KeySpec{Access: access, Begin: from, Last: -1, Step: step}
}

// KeysCounted returns the specification of a number of keys at an index, followed by that many
// keys.
func KeysCounted(access string, at int) KeySpec {
	return KeySpec{Access: access, Begin: at, Step: 1, Counted: true}
}

// KeysOfRules returns the specification of the keys of rules, which begin at an index.
func KeysOfRules(access string, from int) KeySpec {
	return KeysFound(access, from, func(words [][]byte, at int) (key, behind int) {
		if _, length := Rule(words[min(at, len(words)):]); length > 0 {
			return at, at + length
		}
		return 0, 0
	})
}

// KeysFound returns the specification of keys that next finds in the words of a call: the first one
// at an index, mostly from, or behind it, and where the search continues; 0: there is none.
func KeysFound(access string, from int, next func(words [][]byte, at int) (key, behind int)) KeySpec {
	return KeySpec{Access: access, Begin: from, Step: 1, next: next}
}

// positions yields the indexes of the keys in a call. In a call that is too short, or has a wrong
// number of keys, it yields those that it finds; the handler reports the error.
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
	if k.next != nil {
		for i, behind := k.next(words, k.Begin); i > 0; i, behind = k.next(words, behind) {
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

// FullName returns the name as COMMAND reports it: client|list.
func (c *Command) FullName() string {
	if c.parent != nil {
		return c.parent.Name + "|" + c.Name
	}
	return c.Name
}

// Rejects reports whether the arity forbids a call of this many words.
func (c *Command) Rejects(words int) bool {
	return c.Arity >= 0 && words != c.Arity || words < -c.Arity
}

// table holds all commands by name.
type table map[string]*Command

// Table holds the registered commands by name.
var Table = make(table)

// Count is the number of commands and subcommands registered so far: the Index of the next one.
var Count int

// Register adds commands to the table. Those that name no group are in this one; subcommands are in
// that of their command, by name. It is called by init functions, and panics if a name is taken.
func Register(group string, family ...*Command) {
	for _, c := range family {
		c.Group = cmp.Or(c.Group, group)
		if _, twice := Table[c.Name]; twice {
			panic("resp: command declared twice: " + c.Name)
		}
		Table[c.Name] = c
		c.upper = strings.ToUpper(c.Name)
		c.number()
		slices.SortFunc(c.Subs, func(a, b *Command) int { return strings.Compare(a.Name, b.Name) })
		for _, sub := range c.Subs {
			sub.parent, sub.OnFirstGroup, sub.Group = c, c.OnFirstGroup, cmp.Or(sub.Group, c.Group)
			sub.number()
		}
	}
}

// number sets the index of a command, and the access bits of its keys.
func (c *Command) number() {
	c.Index = Count
	Count++
	for i := range c.Keys {
		c.Keys[i].bits = accessBits(c.Keys[i].Access)
	}
	if c.HashKeys == nil && len(c.Keys) == 1 && c.Keys[0].Access != notKey {
		c.onlyKey = c.Keys[0].single()
	}
	c.plain = len(c.Subs) == 0 && !c.BoundsWords() && c.Flags&AnyKeys == 0
}

// Called reports whether name, in lower or upper case, is the name of a command that is no
// subcommand. Clients repeat commands: this is cheaper than Find. c may be nil.
func (c *Command) Called(name []byte) bool {
	return c != nil && c.parent == nil && (string(name) == c.upper || string(name) == c.Name)
}

// Find returns the command of a name in any case; nil if there is none. It does not allocate.
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

// Sub returns the subcommand of a name in any case; nil if there is none.
func (c *Command) Sub(word []byte) *Command {
	i := slices.IndexFunc(c.Subs, func(s *Command) bool { return strings.EqualFold(s.Name, string(word)) })
	if i < 0 {
		return nil
	}
	return c.Subs[i]
}

// JoinsOthers reports whether calls of a command may run under the same locks as the calls before
// and after: they have keys, are fast or short, and do not change the session.
func (c *Command) JoinsOthers() bool {
	return c.Short || c.Flags&(Fast|WholeKeyspace|Stepwise|Immediate|OwnLocks) == Fast && len(c.Keys) > 0
}
