package resp

import (
	"slices"
	"strings"
)

// command is the one declaration of a command. Everything in it is used on every call or told to clients: the arity rejects, the keys choose
// the locks, the write flag decides whether anything may change; and COMMAND, COMMAND DOCS, COMMAND GETKEYS, the hints of redis-cli and
// docs/COMMANDS.md are read off it.
type command struct {
	name       string // in lower case; of a subcommand its own word alone
	syntax     string // the arguments in the notation of Redis' manual, see syntax.go
	arity      int    // how many words a call has, the name included; -n: n or more
	flags      flags
	keys       []keySpec
	hashKeys   func(h *hasher, words [][]byte) // of a command that makes its keys' names of its words; keys tells clients how to route it
	group      string                          // of the manual: generic, string, bitmap, hash, sorted-set, connection, server, ratelimit
	since      string                          // the version of Redis, or of this server for its own commands, that brought it
	complexity string
	summary    string
	example    string // a call and its reply, for docs/COMMANDS.md
	categories string // of access lists, beyond those that group and flags imply, separated by spaces
	tips       string // for clients and proxies, separated by spaces
	deprecated string // since which version, and in replacedBy what to use instead
	replacedBy string
	prepare    func(c *call, words [][]byte) // what can be done before the locks are taken; not of what EXEC runs
	reaches    func(words [][]byte) bool     // of a command that may look at keys that its words do not name: whether a call does
	run        func(*call) error
	subs       []*command

	parent *command // of a subcommand
	index  int      // a number of its own
}

// flags are what COMMAND tells of a command, and what dispatch goes by.
type flags uint32

const (
	write       flags = 1 << iota // may change the keyspace
	readonly                      // looks at it
	denyOOM                       // may make it larger
	admin                         // for operators
	fast                          // takes constant or logarithmic time
	loading                       // answers while data is being loaded
	stale                         // answers on a replica that lost its primary
	noScript                      // not from scripts
	noAuth                        // before authentication
	noMulti                       // not within MULTI
	skipMonitor                   // not shown to MONITOR
	skipSlowlog                   // not in the slow log
	noAsyncLoading
	allowBusy       // answers while a script runs for too long
	noMandatoryKeys // may be called without keys
	blocking        // may hold the connection until something happens
	movableKeys     // keys cannot be found by first, last and step alone
	wholeKeyspace   // not told to clients: locks every shard
	stepwise        // not told to clients: locks one shard after the other, unless it is within a transaction, which then locks them all
	immediate       // not told to clients: runs within MULTI too, where others are queued
	health          // not told to clients: says whether the server is well, so that it is refused as writes are when the disk fails
	ownLocks        // not told to clients: cannot run under the locks of a transaction, as it takes locks itself or takes its time
)

var flagNames = []struct {
	flag flags
	name string
}{
	{write, "write"}, {readonly, "readonly"}, {denyOOM, "denyoom"}, {admin, "admin"}, {noScript, "noscript"},
	{loading, "loading"}, {stale, "stale"}, {skipMonitor, "skip_monitor"}, {skipSlowlog, "skip_slowlog"}, {fast, "fast"}, {noAuth, "no_auth"},
	{noMandatoryKeys, "no_mandatory_keys"}, {noAsyncLoading, "no_async_loading"}, {noMulti, "no_multi"},
	{blocking, "blocking"}, {movableKeys, "movablekeys"}, {allowBusy, "allow_busy"},
}

// keySpec says where keys stand among the words of a call.
type keySpec struct {
	access   string // in Redis' words, e.g. "RW access update"
	begin    int    // index of the first key, or of the number of keys
	last     int    // index of the last key relative to begin; negative: from the end of the call
	step     int    // from one key to the next
	counted  bool   // begin is the number of keys, which follow it
	patterns bool   // keys are made of patterns in the call and of what other keys hold: nobody can tell which
	token    string // the key is the word behind this one
	rules    bool   // from begin on stand rules of RL.ALL, each with a key at its beginning

	variable func(words [][]byte) (access string) // the access of one call, where its options decide; nil: as access says
}

// key is the specification of one key at an index.
func key(access string, at int) keySpec { return keySpec{access: access, begin: at, step: 1} }

// keyVariable is the specification of one key whose access depends on the options of the call.
func keyVariable(access string, at int, variable func(words [][]byte) string) keySpec {
	return keySpec{access: access + " variable_flags", begin: at, step: 1, variable: variable}
}

// accessOf is how a call uses the keys.
func (k *keySpec) accessOf(words [][]byte) string {
	if k.variable != nil {
		return k.variable(words)
	}
	return k.access
}

// keysToEnd is that of keys from an index to the end, each step words after the one before.
func keysToEnd(access string, from, step int) keySpec {
	return keySpec{access: access, begin: from, last: -1, step: step}
}

// keysCounted is that of a number of keys at an index, followed by as many keys.
func keysCounted(access string, at int) keySpec {
	return keySpec{access: access, begin: at, step: 1, counted: true}
}

// keysOfRules is that of the keys at the beginning of rules, from an index on.
func keysOfRules(access string, from int) keySpec {
	return keySpec{access: access, begin: from, step: 1, rules: true}
}

// positions yields the indexes of the keys in a call. Of a call that is cut short or whose number of keys makes no sense it yields
// those that can be made out; the handler finds what is wrong.
func (k keySpec) positions(words [][]byte, yield func(int)) {
	switch {
	case k.patterns:
		return
	case k.token != "":
		for i := len(words) - 2; i > 0; i-- { // the last one counts
			if equalFold(words[i], k.token) {
				yield(i + 1)
				return
			}
		}
		return
	}
	if k.rules {
		for i := k.begin; i < len(words) && beginsRule(words[i:]); i += ruleLength(words[i:]) {
			yield(i)
		}
		return
	}
	first, last := k.begin, k.begin+k.last
	if k.last < 0 {
		last = len(words) + k.last
	}
	if k.counted {
		if k.begin >= len(words) {
			return
		}
		n, ok := parseInt(words[k.begin])
		if !ok || n <= 0 {
			return
		}
		first = k.begin + 1
		last = first + int(min(n, int64(len(words)))) - 1
	}
	for i := first; i <= last && i < len(words); i += k.step {
		yield(i)
	}
}

// fullName is the name as COMMAND tells it: client|list.
func (c *command) fullName() string {
	if c.parent != nil {
		return c.parent.name + "|" + c.name
	}
	return c.name
}

func (c *command) rejects(words int) bool {
	return c.arity >= 0 && words != c.arity || words < -c.arity
}

// table holds all commands by name.
type table map[string]*command

var commands = make(table)

// declared is how many commands there are, with their subcommands: the next one's index.
var declared int

// The families declare themselves: each cmd_*.go file registers its entries.
func register(family ...*command) {
	for _, c := range family {
		if _, twice := commands[c.name]; twice {
			panic("resp: command declared twice: " + c.name)
		}
		commands[c.name] = c
		c.index = declared
		declared++
		for _, sub := range c.subs {
			sub.parent, sub.index = c, declared
			declared++
		}
	}
}

// find looks a name up, in any case, without allocating.
func (t table) find(name []byte) *command {
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

// sub finds a subcommand by its word.
func (c *command) sub(word []byte) *command {
	i := slices.IndexFunc(c.subs, func(s *command) bool { return strings.EqualFold(s.name, string(word)) })
	if i < 0 {
		return nil
	}
	return c.subs[i]
}

// joinsOthers tells whether calls of a command may be run under one hold with others: they have keys, take little time and leave the session as
// it is.
func (c *command) joinsOthers() bool {
	return c.flags&fast != 0 && len(c.keys) > 0 && c.flags&(wholeKeyspace|stepwise|immediate|ownLocks) == 0
}
