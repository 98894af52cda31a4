package command

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/internal/acl"
	"rlserver/internal/clock"
	"rlserver/internal/stats"
	"rlserver/internal/storage"
	"rlserver/resp/config"
	"rlserver/resp/diagnostics"
	"rlserver/resp/lua"
	"rlserver/resp/pubsub"
	"rlserver/resp/tracking"
	"rlserver/resp/wire"
)

// Call is what a handler works on. A connection reuses one for all its calls; a call that waits has
// one of its own, which other goroutines run.
type Call struct {
	Env     *Env
	Tx      *engine.Tx // holds the locks of the keys
	Command *Command
	Words   [][]byte     // the call as sent, the command's name first
	Args    Args         // a cursor over what follows the name
	Keys    []engine.Key // all, in the order of the words
	Reply   wire.Reply

	DB      int          // index of the database
	Client  int64        // the connection's id
	Account *acl.Account // the user that the connection acts as
	Conn    conn

	Tracked *tracking.Client // of a client that has sent CLIENT TRACKING; nil: it has not

	// NoTouch is CLIENT NO-TOUCH: lookups leave the access clocks of keys as they are.
	NoTouch bool

	// Wanted reports whether the node that has sent the call still waits for the reply: otherwise
	// the call must not begin to run. nil: a client has sent it.
	Wanted func() bool

	Random *rand.Rand

	NoRoom     bool // there was too little memory when the call, which runs a script, was admitted
	All        bool // the call needs the locks of all shards because of a setting
	Changed    bool // the handler has changed keys
	Repeats    bool // the words, but for the key, are those of the connection's last call
	CountsOnce bool // set by a handler whose declaration cannot tell, see Command.CountsOnce

	Executing bool    // within EXEC, under the locks of all queued calls
	InScript  bool    // by redis.call
	Moment    *int64  // what TIME tells all calls of an EXEC or a script, Unix µs; nil: it is none
	Attempt   Attempt // of a call that may wait
	Request   Request // set by a handler that returns ErrWait
	Postponed []postponed
	Ready     any   // the result of Command.Prepare
	Errors    int64 // replies that were errors

	Inside      *[]byte // lines for monitors, of the calls that the call has made; nil: none
	ShownInside int     // bytes of such lines that monitors have not seen

	Rules  []limit.Window // scratch space of RL.MULTI
	Limits []engine.Limit // scratch space of calls with several limits
	last   *LastLimit     // of calls with one; nil: there was none yet
	Costs  []int64        // scratch space of those that take several costs
	digits [20]byte       // of Digits
}

// conn is the connection that a call came from.
type conn interface {
	// Gone reports whether the client has closed the connection. It makes a system call.
	Gone() bool
	// TakesLong notes that the call takes many milliseconds, see Call.TakesLong.
	TakesLong()
	// Running returns how long the call has been running.
	Running() time.Duration
	// See delays the replies of the batch until the journal has reached a position. No lock is
	// held.
	See(engine.Position)
	// FlushStats passes the calls of the batch so far to Env.Stats.
	FlushStats()
	// DeferUntilUnlocked runs a function at the end of the call, when no lock is held. A handler
	// uses it for work that takes locks or sleeps, because EXEC runs the handler under the locks of
	// all its calls.
	DeferUntilUnlocked(do func())
	// ChangesPaused reports whether CLIENT PAUSE holds back calls that change something.
	ChangesPaused() bool
	// AwaitChanges waits while CLIENT PAUSE holds back changes, and reports false if the client has
	// disconnected. It is for a call that takes its locks after it was checked. No lock is held.
	AwaitChanges() bool
	// LogIfSlow adds a call to the slow log if it took long enough.
	LogIfSlow(p Prepared, took time.Duration)
	// EvictFor evicts keys until so many bytes more fit, if it can. No lock is held.
	EvictFor(bytes int64)
	// Local reports whether the client is on this machine.
	Local() bool
	// TLS reports whether the client uses TLS.
	TLS() bool
	// Messages returns what the client publishes and has subscribed to.
	Messages() *pubsub.Conn
	// Track returns Call.Tracked, which it makes if there is none.
	Track() *tracking.Client
}

// Digits returns an integer as text, which is valid until the next call of Digits.
func (c *Call) Digits(n int64) []byte { return strconv.AppendInt(c.digits[:0], n, 10) }

// EvictFor evicts keys before a call that needs many more bytes of memory than it was sent. Whether
// there is enough memory is checked later, under its locks.
func (c *Call) EvictFor(bytes int64) { c.Conn.EvictFor(bytes) }

// Usage returns the memory of a key, in bytes; 0 if it is missing. No lock is held.
func (c *Call) Usage(name []byte) int64 { return c.Env.Engine.Usage(c.DB, c.Env.Engine.Key(name)) }

// EvictForString evicts keys before a string is lengthened to length bytes, if that is much.
func (c *Call) EvictForString(name []byte, length int64) {
	if length >= engine.LargeGrowth {
		c.EvictFor(length - c.Env.Engine.StringLength(c.DB, c.Env.Engine.Key(name)))
	}
}

// Refuse replies with an error. One that is not an engine.Error is logged, and the client gets an
// internal error.
func (c *Call) Refuse(err error) {
	if counted, ok := err.(CountedError); ok {
		c.Env.Stats.Failed(c.Command.Index, int(c.Client))
		c.Reply.Error(string(counted))
		return
	}
	var reply engine.Error
	if !errors.As(err, &reply) {
		c.Env.Log.Error("a command failed", "command", c.Command.FullName(), "client", c.Client, "error", err)
		reply = "ERR internal error"
	}
	c.Env.Stats.Failed(c.Command.Index, int(c.Client))
	c.ReplyError(string(reply))
}

// CountedError is the error of a call that was counted already: a script fails with the error of
// one of its calls.
type CountedError engine.Error

func (e CountedError) Error() string { return string(e) }

// ReplyError replies with an error, and counts it.
func (c *Call) ReplyError(text string) {
	c.Errors++
	c.Env.Stats.Errors.Count(text)
	c.Reply.Error(text)
}

// ReplyOK replies with OK, unless there is an error, which it returns. So do the following.
func (c *Call) ReplyOK(err error) error {
	if err == nil {
		c.Reply.OK()
	}
	return err
}

// ReplyFlag replies with 1 or 0.
func (c *Call) ReplyFlag(yes bool, err error) error {
	if err == nil {
		c.Reply.Flag(yes)
	}
	return err
}

// ReplyOrNull replies with a bulk string if found, else with a null.
func (c *Call) ReplyOrNull(value []byte, found bool, err error) error {
	if err == nil {
		c.Reply.BulkOrNull(value, found)
	}
	return err
}

// ReplyCount replies with a size.
func (c *Call) ReplyCount(n int, err error) error { return c.ReplyInteger(int64(n), err) }

// ReplyInteger replies with an integer.
func (c *Call) ReplyInteger(n int64, err error) error {
	if err == nil {
		c.Reply.Integer(n)
	}
	return err
}

// ReplyStrings replies with an array of bulk strings.
func (c *Call) ReplyStrings(list []string) error {
	c.Reply.Array(len(list))
	for _, s := range list {
		c.Reply.BulkString(s)
	}
	return nil
}

// Decided counts a decision of the command, unless its cost is 0.
func (c *Call) Decided(cost int64, d limit.Decision) {
	if cost == 0 {
		return
	}
	outcome := stats.Admitted
	switch {
	case !d.Allowed:
		outcome = stats.Denied
	case d.ShadowDenied:
		outcome = stats.ShadowDenied
	}
	c.Env.Stats.Decided(c.Command.Index, int(c.Client), outcome)
}

// GivenUp reports whether nobody waits for the reply, so that the call must not begin to run.
func (c *Call) GivenUp() bool { return c.Wanted != nil && !c.Wanted() }

// Fault replies with an error for a handler that has panicked, and logs the stack. mark is where
// the reply began.
func (c *Call) Fault(fault any, mark int) {
	c.Env.Log.Error("a command panicked", "command", c.Command.FullName(), "client", c.Client,
		"fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
	c.Reply.B = c.Reply.B[:mark]
	c.Env.Stats.Failed(c.Command.Index, int(c.Client))
	c.ReplyError("ERR internal error")
}

// RedisVersion is the version of Redis that HELLO and INFO report. Its commands are served, and
// clients choose by it what they send.
const RedisVersion = "7.0.15"

// Env is the part of the server that handlers use. All calls share it.
type Env struct {
	Version string // of this server
	RunID   string // 40 hex digits, new with every start
	Started time.Time
	Store   storage.Store  // nil: the data is only in memory
	Saves   *storage.Saves // of Store

	Engine    *engine.Engine
	Home      *engine.Engine // of calls without keys; Engine, but for those of a group of a cluster
	Time      *clock.Clock
	Settings  *config.Settings
	Log       *slog.Logger
	Stats     *stats.Counters
	Slowlog   *diagnostics.Slowlog
	Latency   *diagnostics.Latency
	Waiting   Waiting
	Server    Server
	Channels  *pubsub.Hub
	Tracking  *tracking.Table
	Users     *acl.Users
	AccessLog *acl.Log
	// ChangeUsers changes the users, in a cluster on all nodes, and applies the change to the
	// connections. It returns how many were deleted. The error is the text of a reply.
	ChangeUsers    func(*Call, acl.Change) (deleted int, err error)
	Cluster        Cluster      // Alone if the server is alone
	Mode           string       // of the server as INFO and HELLO report it
	Databases      int          // that calls may name; 0: those of Engine
	ReloadPolicies func() error // nil: there is no policy file

	Scripts  *lua.Scripts // those that run, on all partitions
	Executor Executor
	Ended    <-chan struct{} // closed when Engine is no longer led here; nil: it always is

	HTTP func() HTTPFigures // nil: there is no HTTP port
}

// Executor runs calls: it is that of package executor, which imports this one.
type Executor interface {
	// Unavailable returns why calls that have and lack these flags cannot run now, or nil.
	Unavailable(has, lacks Flags) error
	// Monitors returns the number of clients to which calls are shown.
	Monitors() int
}

// Waiting has the calls that wait for keys of Env.Engine.
type Waiting interface {
	Empty(db int, keys []engine.Key) bool // reports whether none waits for one of these keys
	RetryAll()                            // is called without locks after policies have changed
}

// Server is the server as handlers see it.
type Server interface {
	// Keyspaces returns what calls on this node run on.
	Keyspaces() []Keyspace
	// Figures takes no lock that a call holds for long.
	Figures() Figures
	// ResetFigures makes the counters of Figures and of Env.Stats count from zero.
	ResetFigures()
	// FreeMemory returns memory to the system, once a second at most.
	FreeMemory()
	// ChangeSettings changes all the settings or none, and applies them.
	ChangeSettings(*Call, []config.Change) error
}

// Refusal returns why the store refuses changes, or "".
func (e *Env) Refusal() string {
	if e.Store == nil {
		return ""
	}
	return e.Store.Refusal()
}

// Clock returns the server time, Unix ms.
func (e *Env) Clock() int64 { return e.Time.Now() }

// HasDatabase reports whether n is the index of a database. In a cluster there is only one, and
// commands refuse others with errors of their own: those that Redis Cluster has by default.
func (e *Env) HasDatabase(n int64) bool {
	return 0 <= n && n < int64(cmp.Or(e.Databases, e.Engine.Databases()))
}

// Hasher hashes the keys of calls.
type Hasher struct {
	Engine *engine.Engine
	Keys   []engine.Key
	Names  []byte // of keys that are not words of a call
}

const (
	manyKeys  = 64      // a Hasher keeps memory for so many keys between batches
	manyNames = 4 << 10 // and for so many bytes of names
)

// Reset removes all keys.
func (h *Hasher) Reset() { h.Keys, h.Names = h.Keys[:0], h.Names[:0] }

// Release drops the keys of a batch. Large buffers are freed, small ones kept for the next batch.
func (h *Hasher) Release() {
	if cap(h.Keys) > manyKeys {
		h.Keys = nil
	}
	clear(h.Keys[:cap(h.Keys)])
	if cap(h.Names) > manyNames {
		h.Names = nil
	}
}

// Add hashes the keys of a call, and appends them.
func (h *Hasher) Add(p *Prepared) {
	before := len(h.Keys)
	c := p.Command
	switch {
	case c.onlyKey > 0: // nearly all commands
		h.Keys = append(h.Keys, h.Engine.Key(p.Words[c.onlyKey]))
	case c.HashKeys != nil:
		c.HashKeys(h, p.Words)
	default:
		for i := range p.Command.Keys {
			h.addSpec(&p.Command.Keys[i], p.Words)
		}
	}
	p.Keys = len(h.Keys) - before
}

// AddName adds a key by its name, which is not copied.
func (h *Hasher) AddName(name []byte) { h.Keys = append(h.Keys, h.Engine.Key(name)) }

func (h *Hasher) addSpec(spec *KeySpec, words [][]byte) {
	if at := spec.single(); at > 0 {
		h.Keys = append(h.Keys, h.Engine.Key(words[at]))
		return
	}
	spec.positions(words, func(i int) { h.Keys = append(h.Keys, h.Engine.Key(words[i])) })
}

// Prepared is a call whose command has been found.
type Prepared struct {
	Command *Command
	Words   [][]byte
	Name    int  // number of words in the command's name: 1, or 2 with a subcommand
	Keys    int  // number of its keys in the Hasher
	Size    int  // bytes of the call in the pipeline, 0 for the first
	DB      int  // the database after EXEC has run it
	All     bool // it needs the locks of all shards because of a setting, see Command.AnyKeys
	Repeats bool // see Call.Repeats; false after it has run

	Inside *[]byte // Call.Inside after it has run
}

// NamedKey returns the first key that the words of a call name, by which clients of a cluster
// choose a node; nil if there is none. The command has keys.
func (p *Prepared) NamedKey() (key []byte) {
	p.Command.Keys[0].positions(p.Words, func(at int) {
		if key == nil {
			key = p.Words[at]
		}
	})
	return key
}

// WantsAll reports whether a call needs the locks of all shards.
func (p *Prepared) WantsAll() bool {
	return p.All || p.Command.Flags&WholeKeyspace != 0 || p.Command.Reaches != nil && p.Command.Reaches(p.Words)
}

// Flags returns the flags of the call.
func (p *Prepared) Flags(env *Env) Flags {
	if p.Command.FlagsOf == nil {
		return p.Command.Flags
	}
	return p.Command.FlagsOf(env, p.Words)
}

// HelpSince declares the subcommand HELP of a command that has it since a version of Redis.
func HelpSince(version string) *Command {
	return &Command{Name: "help", Arity: 2, Flags: Loading | Stale, Since: version, Complexity: "O(1)",
		Summary: "Show helpful text about the different subcommands", Run: Help}
}

// Help handles HELP of every command that has subcommands, from their declarations.
func Help(c *Call) error {
	parent := c.Command.parent
	c.Reply.Array(3 + 2*(len(parent.Subs)-1))
	c.Reply.Status(strings.ToUpper(parent.Name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, sub := range parent.Subs {
		if sub != c.Command {
			sub = sub.Quoted()
			c.Reply.Status(strings.TrimSpace(strings.ToUpper(sub.Name) + " " + sub.Syntax))
			c.Reply.Status("    " + strings.TrimSuffix(sub.Summary, ".") + ".")
		}
	}
	c.Reply.Status("HELP")
	c.Reply.Status("    Prints this help.")
	return nil
}

// Database takes the index of a database.
func (c *Call) Database() int {
	n := c.Args.Int32Or(engine.ErrNotInteger, errNotInt32)
	if !c.Env.HasDatabase(n) {
		c.Args.Fail(ErrNoSuchDB)
	}
	return int(n)
}

// WrongArity returns the error for a number of arguments that Command.Arity cannot express.
func (c *Call) WrongArity() engine.Error {
	return engine.Error("ERR wrong number of arguments for '" + c.Command.FullName() + "' command")
}

// WrongSubcommandArity is WrongArity as some subcommands phrase it, with the name as the client
// sent it.
func (c *Call) WrongSubcommandArity() engine.Error {
	container, _, _ := strings.Cut(c.Command.FullName(), "|")
	return engine.Errorf("ERR unknown subcommand or wrong number of arguments for '%.128s'. Try %s HELP.",
		c.Words[1], strings.ToUpper(container))
}

// CloneWords copies the words of a call, whose buffer the next read overwrites.
func CloneWords(words [][]byte) [][]byte {
	size := 0
	for _, word := range words {
		size += len(word)
	}
	text, kept := make([]byte, 0, size), make([][]byte, len(words))
	for i, word := range words {
		text = append(text, word...)
		kept[i] = text[len(text)-len(word) : len(text) : len(text)]
	}
	return kept
}
