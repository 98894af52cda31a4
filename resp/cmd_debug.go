package resp

import (
	"encoding/hex"
	"fmt"
	"time"

	"rlserver/engine"
)

func init() {
	const operator = admin | noScript
	const always = operator | loading | stale
	debug := func(c *command) *command {
		c.group, c.since, c.complexity = "server", "1.0.0", or(c.complexity, "O(1)")
		c.run = debugging(c.run)
		return c
	}
	register(
		&command{name: "debug", arity: -2, flags: always, group: "server", since: "1.0.0", complexity: "Depends on subcommand.",
			summary: "A container for debugging commands",
			subs: []*command{
				debug(&command{name: "digest", arity: 2, flags: operator | readonly | wholeKeyspace,
					complexity: "O(N) where N is the size of all keys",
					summary:    "A digest of all that the databases hold, that of Redis for the types that Redis has", run: debugDigest}),
				debug(&command{name: "digest-value", arity: -3, flags: operator | readonly, keys: []keySpec{keysToEnd("RO", 2, 1)},
					syntax: "key [key ...]", complexity: "O(N) where N is the size of the keys",
					summary: "Digests of what keys hold, those of Redis for the types that Redis has", run: debugDigestValue}),
				debug(&command{name: "error", arity: 3, flags: always, syntax: "message", summary: "Answer with an error", run: debugError}),
				debug(&command{name: "help", arity: 2, flags: always, summary: "Show helpful text about the different subcommands", run: help}),
				debug(&command{name: "loadaof", arity: 2, flags: operator | ownLocks, complexity: "O(N) where N is the size of all keys",
					summary: "The same as DEBUG RELOAD", run: debugReload}),
				debug(&command{name: "log", arity: 3, flags: always, syntax: "message", summary: "Write a message to the server's log", run: debugLog}),
				debug(&command{name: "object", arity: 3, flags: operator | readonly, keys: []keySpec{key("RO", 2)}, syntax: "key",
					summary: "What is known of a key beside what it holds", run: debugObject}),
				debug(&command{name: "reload", arity: 2, flags: operator | ownLocks, complexity: "O(N) where N is the size of all keys",
					summary: "Save a snapshot if there is a disk to keep it, and make all keys anew as if it had been loaded", run: debugReload}),
				debug(&command{name: "set-active-expire", arity: 3, flags: always, syntax: "<0 | 1>",
					summary: "Whether keys are deleted when their time has come although nobody asks for them", run: debugSetActiveExpire}),
				debug(&command{name: "sleep", arity: 3, flags: always, syntax: "seconds",
					summary: "Hold this connection for so many seconds, decimals allowed", run: debugSleep}),
			}},
	)
}

const errDebugNotAllowed = engine.Error("ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local connection, " +
	"otherwise you need to set this option in the configuration file, and then restart the server.")

// debugging refuses a subcommand of DEBUG to those who may not use it.
func debugging(run func(*call) error) func(*call) error {
	return func(c *call) error {
		s := sessionOf(c)
		allowed := s.server.settings.start.DebugCommand
		if allowed != "yes" && (allowed != "local" || !local(s.guard.RemoteAddr())) {
			return errDebugNotAllowed
		}
		return run(c)
	}
}

func debugLog(c *call) error {
	c.env.log.Warn("DEBUG LOG", "client", c.client, "message", fmt.Sprintf("%.1024s", c.args.next()))
	c.reply.ok()
	return nil
}

func debugSetActiveExpire(c *call) error {
	active := c.args.integer()
	if err := c.args.end(); err != nil {
		return err
	}
	c.env.settings.paused.Store(active == 0)
	c.reply.ok()
	return nil
}

// debugSleep holds one connection, where Redis holds all: within EXEC not before the locks are let go of.
func debugSleep(c *call) error {
	s := sessionOf(c)
	seconds := c.args.float()
	if err := c.args.end(); err != nil {
		return err
	}
	sleep := func() { time.Sleep(time.Duration(seconds * float64(time.Second))) }
	if c.executing {
		s.afterwards = append(s.afterwards, sleep)
	} else {
		sleep()
	}
	c.reply.ok()
	return nil
}

// debugError handles DEBUG ERROR message.
func debugError(c *call) error { return engine.Error(c.args.next()) }

// debugDigest handles DEBUG DIGEST.
func debugDigest(c *call) error {
	c.reply.digest(c.tx.DigestAll())
	return nil
}

// debugDigestValue handles DEBUG DIGEST-VALUE key [key ...].
func debugDigestValue(c *call) error {
	c.reply.array(c.args.left())
	for c.args.more() {
		c.reply.digest(c.tx.Digest(c.args.key()))
	}
	return nil
}

func (r *reply) digest(d engine.Digest) { r.status(hex.EncodeToString(d[:])) }

// debugObject handles DEBUG OBJECT key. Programs read the fields that Redis has by their names.
func debugObject(c *call) error {
	k := c.args.key()
	at, ok := c.tx.Address(k)
	if !ok {
		return engine.ErrNoSuchKey
	}
	encoding, _ := c.tx.Encoding(k, c.env.settings.packing())
	references, _ := c.tx.References(k)
	bytes, _ := c.tx.MemoryUsage(k)
	idle, _ := c.tx.Idle(k)
	c.reply.status(fmt.Sprintf("Value at:%s refcount:%d encoding:%s memory:%d lru_seconds_idle:%d", at, references, encoding, bytes, idle))
	return nil
}

// debugReload handles DEBUG RELOAD and DEBUG LOADAOF: a snapshot and the log tell the same.
func debugReload(c *call) error {
	s := sessionOf(c)
	if s.server.store != nil {
		if err := s.server.saveFinally(); err != nil {
			s.server.log.Error("DEBUG RELOAD could not save", "client", c.client, "error", err)
			return errNotSaved
		}
	}

	c.tx.BeginAll(s.server.clock(), c.db, false)
	keys := c.tx.Reload()
	c.tx.End()

	s.server.log.Warn("DEBUG RELOAD", "client", c.client, "keys", keys)
	c.reply.ok()
	return nil
}
