package resp

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"strings"
	"time"

	"rlserver/clock"
	"rlserver/engine"
	"rlserver/engine/limit"
)

// call is one call of a command: what its handler works on. A connection has one and uses it for
// every call; a call that waits has one of its own, which others run.
type call struct {
	env     *env
	tx      *engine.Tx // holds the locks of the keys
	command *command
	words   [][]byte     // the call as sent, the command's name first
	args    args         // a cursor over what follows the name
	keys    []engine.Key // all, in the order of the words
	reply   reply

	db     int   // the number of the database
	client int64 // the connection's id
	conn   conn
	random *rand.Rand

	executing bool    // within EXEC, under the locks of all that was queued
	attempt   attempt // which one it is, of a call that may wait
	request   request // of a handler that has returned errHeld
	postponed []postponed
	ready     any   // what prepare has made
	errors    int64 // replies that were errors

	rules  []limit.Window // scratch of RL.MULTI
	limits []engine.Limit // and of the other limiters
}

// conn is the connection that a call came from.
type conn interface {
	// gone reports whether the client has closed the connection. It asks the system.
	gone() bool
	// running is for how long the call has been running.
	running() time.Duration
}

// makeRoomFor evicts keys before a call that takes much more memory than it has words. Whether
// there is room then is found out under its locks.
func (c *call) makeRoomFor(bytes int64) { c.tx.MakeRoomFor(c.env.clock(), bytes) }

// usage is what a key takes, in bytes. No lock is held.
func (c *call) usage(name []byte) int64 { return c.env.engine.Usage(c.db, c.env.engine.Key(name)) }

// makeRoomToStretch does so before a string is stretched to so many bytes.
func (c *call) makeRoomToStretch(name []byte, length int64) {
	if length >= engine.LargeGrowth {
		c.makeRoomFor(length - c.env.engine.StringLength(c.db, c.env.engine.Key(name)))
	}
}

// run lets the handler of a command answer a call whose locks are held, and tells whether it is to
// wait instead.
func (c *call) run(p *prepared, keys []engine.Key) (held bool) {
	mark := len(c.reply.b)
	c.command, c.words, c.args, c.keys = p.command, p.words, args{list: p.words[p.name:], keys: keys}, keys
	switch err := p.command.run(c); err {
	case nil:
	case errHeld:
		return true
	default:
		c.reply.b = c.reply.b[:mark] // half an answer never leaves
		c.refuse(err)
	}
	return false
}

// refuse answers with what went wrong. Errors that are not meant for clients go to the log instead.
func (c *call) refuse(err error) {
	var told engine.Error
	if !errors.As(err, &told) {
		c.env.log.Error("a command failed", "command", c.command.fullName(), "client", c.client, "error", err)
		told = "ERR internal error"
	}
	c.errors++
	c.reply.error(string(told))
}

// fault answers for a handler that has panicked: the client gets an error, the log the stack.
func (c *call) fault(fault any, mark int) {
	c.env.log.Error("a command panicked", "command", c.command.fullName(), "client", c.client,
		"fault", fmt.Sprint(fault), "stack", string(debug.Stack()))
	c.reply.b = c.reply.b[:mark]
	c.reply.error("ERR internal error")
}

// env is what handlers ask of the server, the same for all calls.
type env struct {
	engine   *engine.Engine
	time     *clock.Clock
	settings *Settings
	log      *slog.Logger
	tallies  tallies
	waiting  interface {
		empty(db int, keys []engine.Key) bool
	}
	reloadPolicies  func() error // nil: there is no file of policies
	policiesChanged func()       // to be called, without locks, when policies have changed
}

func (e *env) clock() int64 { return e.time.Now() }

func (e *env) hasDatabase(n int64) bool { return 0 <= n && n < int64(e.engine.Databases()) }

// hasher hashes the keys of calls.
type hasher struct {
	engine *engine.Engine
	keys   []engine.Key
	names  []byte // of those keys that are not words of a call
}

const (
	manyKeys  = 64      // how many keys a hasher keeps room for between batches
	manyNames = 4 << 10 // and for how many bytes of names
)

func (h *hasher) reset() { h.keys, h.names = h.keys[:0], h.names[:0] }

// release lets go of what a batch has needed.
func (h *hasher) release() {
	if cap(h.keys) > manyKeys {
		h.keys = nil
	}
	clear(h.keys[:cap(h.keys)])
	if cap(h.names) > manyNames {
		h.names = nil
	}
}

// add hashes the keys of a call, behind those that are hashed already.
func (h *hasher) add(p *prepared) {
	before := len(h.keys)
	if own := p.command.hashKeys; own != nil {
		own(h, p.words)
	} else {
		for i := range p.command.keys {
			h.addSpec(&p.command.keys[i], p.words)
		}
	}
	p.keys = len(h.keys) - before
}

func (h *hasher) addSpec(spec *keySpec, words [][]byte) {
	if spec.begin > 0 && spec.last == 0 && !spec.counted && !spec.rules { // one key: nearly all commands
		h.keys = append(h.keys, h.engine.Key(words[spec.begin]))
		return
	}
	spec.positions(words, func(i int) { h.keys = append(h.keys, h.engine.Key(words[i])) })
}

// prepared is a call whose command has been found.
type prepared struct {
	command *command
	words   [][]byte
	name    int // how many of them are the command's name
	keys    int // how many keys it has, of those that are hashed
	size    int // bytes that it has in the pipeline, if it is not the first
}

// wantsAll tells whether a call needs the locks of all shards.
func (p *prepared) wantsAll() bool {
	return p.command.flags&wholeKeyspace != 0 || p.command.reaches != nil && p.command.reaches(p.words)
}

// help handles HELP of every command that has subcommands: it tells what their declarations say.
func help(c *call) error {
	parent := c.command.parent
	c.reply.array(3 + 2*(len(parent.subs)-1))
	c.reply.status(strings.ToUpper(parent.name) + " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")
	for _, sub := range parent.subs {
		if sub != c.command {
			c.reply.status(strings.TrimSpace(strings.ToUpper(sub.name) + " " + sub.syntax))
			c.reply.status("    " + strings.TrimSuffix(sub.summary, ".") + ".")
		}
	}
	c.reply.status("HELP")
	c.reply.status("    Prints this help.")
	return nil
}
