package command

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"rlserver/clock"
	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/resp/config"
	"rlserver/resp/wire"
	"runtime/debug"
	"strings"
	"time"
)

// Call is one call of a command: what its handler works on. A connection has one and uses it for
// every call; a call that waits has one of its own, which others run.
type Call struct {
	Env     *Env
	Tx      *engine.Tx // holds the locks of the keys
	Command *Command
	Words   [][]byte     // the call as sent, the command's name first
	Args    Args         // a cursor over what follows the name
	Keys    []engine.Key // all, in the order of the words
	Reply   wire.Reply

	DB     int   // the number of the database
	Client int64 // the connection's id
	Conn   conn
	Random *rand.Rand

	Executing bool    // within EXEC, under the locks of all that was queued
	Attempt   Attempt // which one it is, of a call that may wait
	Request   Request // of a handler that has returned ErrWait
	Postponed []postponed
	Ready     any   // what prepare has made
	Errors    int64 // replies that were errors

	Rules  []limit.Window // scratch of RL.MULTI
	Limits []engine.Limit // and of the other limiters
}

// conn is the connection that a call came from.
type conn interface {
	// Gone reports whether the client has closed the connection. It asks the system.
	Gone() bool
	// Running is for how long the call has been running.
	Running() time.Duration
	// See has the replies of the batch wait for a position of the journal. No lock is held.
	See(engine.Position)
}

// MakeRoomFor evicts keys before a call that takes much more memory than it has words. Whether
// there is room then is found out under its locks.
func (c *Call) MakeRoomFor(bytes int64) { c.Tx.MakeRoomFor(c.Env.Clock(), bytes) }

// Usage is what a key takes, in bytes. No lock is held.
func (c *Call) Usage(name []byte) int64 { return c.Env.Engine.Usage(c.DB, c.Env.Engine.Key(name)) }

// MakeRoomToStretch does so before a string is stretched to so many bytes.
func (c *Call) MakeRoomToStretch(name []byte, length int64) {
	if length >= engine.LargeGrowth {
		c.MakeRoomFor(length - c.Env.Engine.StringLength(c.DB, c.Env.Engine.Key(name)))
	}
}

// Run lets the handler of a command answer a call whose locks are held, and tells whether it is to
// wait instead.
func (c *Call) Run(p *Prepared, keys []engine.Key) (held bool) {
	mark := len(c.Reply.B)
	c.Command, c.Words, c.Args, c.Keys = p.Command, p.Words, Args{List: p.Words[p.Name:], Keys: keys}, keys
	switch err := p.Command.Run(c); err {
	case nil:
	case ErrWait:
		return true
	default:
		c.Reply.B = c.Reply.B[:mark] // half an answer never leaves
		c.Refuse(err)
	}
	return false
}

// Refuse answers with what went wrong. Errors that are not meant for clients go to the log instead.
func (c *Call) Refuse(err error) {
	var told engine.Error
	if !errors.As(err, &told) {
		c.Env.Log.Error("a command failed", "command", c.Command.FullName(), "client", c.Client, "error", err)
		told = "ERR internal error"
	}
	c.Errors++
	c.Reply.Error(string(told))
}

// Fault answers for a handler that has panicked: the client gets an error, the log the stack.
func (c *Call) Fault(fault any, mark int) {
	c.Env.Log.Error("a command panicked", "command", c.Command.FullName(), "client", c.Client,
		"fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
	c.Reply.B = c.Reply.B[:mark]
	c.Reply.Error("ERR internal error")
}

// Env is what handlers ask of the server, the same for all calls.
type Env struct {
	Engine   *engine.Engine
	Time     *clock.Clock
	Settings *config.Settings
	Log      *slog.Logger
	Tallies  Tallies
	Waiting  interface {
		Empty(db int, keys []engine.Key) bool
	}
	ReloadPolicies func() error // nil: there is no file of policies
	RetryWaiting   func()       // to be called, without locks, when policies have changed
}

func (e *Env) Clock() int64 { return e.Time.Now() }

func (e *Env) HasDatabase(n int64) bool { return 0 <= n && n < int64(e.Engine.Databases()) }

// Hasher hashes the keys of calls.
type Hasher struct {
	Engine *engine.Engine
	Keys   []engine.Key
	Names  []byte // of those keys that are not words of a call
}

const (
	manyKeys  = 64      // how many keys a hasher keeps room for between batches
	manyNames = 4 << 10 // and for how many bytes of names
)

func (h *Hasher) Reset() { h.Keys, h.Names = h.Keys[:0], h.Names[:0] }

// Release lets go of what a batch has needed.
func (h *Hasher) Release() {
	if cap(h.Keys) > manyKeys {
		h.Keys = nil
	}
	clear(h.Keys[:cap(h.Keys)])
	if cap(h.Names) > manyNames {
		h.Names = nil
	}
}

// Add hashes the keys of a call, behind those that are hashed already.
func (h *Hasher) Add(p *Prepared) {
	before := len(h.Keys)
	if own := p.Command.HashKeys; own != nil {
		own(h, p.Words)
	} else {
		for i := range p.Command.Keys {
			h.addSpec(&p.Command.Keys[i], p.Words)
		}
	}
	p.Keys = len(h.Keys) - before
}

func (h *Hasher) addSpec(spec *KeySpec, words [][]byte) {
	if spec.Begin > 0 && spec.Last == 0 && !spec.Counted && !spec.rules { // one key: nearly all commands
		h.Keys = append(h.Keys, h.Engine.Key(words[spec.Begin]))
		return
	}
	spec.positions(words, func(i int) { h.Keys = append(h.Keys, h.Engine.Key(words[i])) })
}

// Prepared is a call whose command has been found.
type Prepared struct {
	Command *Command
	Words   [][]byte
	Name    int // how many of them are the command's name
	Keys    int // how many keys it has, of those that are hashed
	Size    int // bytes that it has in the pipeline, if it is not the first
}

// WantsAll tells whether a call needs the locks of all shards.
func (p *Prepared) WantsAll() bool {
	return p.Command.Flags&WholeKeyspace != 0 || p.Command.Reaches != nil && p.Command.Reaches(p.Words)
}

// Help handles HELP of every command that has subcommands: it tells what their declarations say.
func Help(c *Call) error {
	parent := c.Command.parent
	c.Reply.Array(3 + 2*(len(parent.Subs)-1))
	c.Reply.Status(strings.ToUpper(parent.Name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, sub := range parent.Subs {
		if sub != c.Command {
			c.Reply.Status(strings.TrimSpace(strings.ToUpper(sub.Name) + " " + sub.Syntax))
			c.Reply.Status("    " + strings.TrimSuffix(sub.Summary, ".") + ".")
		}
	}
	c.Reply.Status("HELP")
	c.Reply.Status("    Prints this help.")
	return nil
}

// Database takes the index of a database there is.
func (c *Call) Database() int {
	n := c.Args.Int32Or(engine.ErrNotInteger, errNotInt32)
	if !c.Env.HasDatabase(n) {
		c.Args.Fail(ErrNoSuchDB)
	}
	return int(n)
}

// WrongArity refuses a number of arguments that the command's declaration cannot.
func (c *Call) WrongArity() engine.Error {
	return engine.Error("ERR wrong number of arguments for '" + c.Command.FullName() + "' command")
}

// CloneWords copies the words of a call, which lie in a buffer that the next read overwrites.
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
