package server

import (
	"cmp"
	"encoding/hex"
	"fmt"
	"time"

	"rlserver/engine"
	"rlserver/engine/eviction"
	"rlserver/engine/object"
	"rlserver/internal/storage"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

func init() {
	const operator = command.Admin | command.NoScript
	const always = operator | command.Loading | command.Stale
	debug := func(c *command.Command) *command.Command {
		c.Group, c.Since, c.Complexity = "server", "1.0.0", cmp.Or(c.Complexity, "O(1)")
		c.Run = ifDebugAllowed(c.Run)
		return c
	}
	command.Register("server",
		&command.Command{Name: "debug", Arity: -2, Flags: always, SubsAreArguments: true, Subs: []*command.Command{
			debug(&command.Command{Name: "digest", Arity: 2,
				Flags:      operator | command.Readonly | command.WholeKeyspace,
				Complexity: "O(N) where N is the size of all keys",
				Summary:    "A digest of all databases, as in Redis for the types that Redis has",
				Merge:      mergeDigests, Run: debugDigest}),
			debug(&command.Command{Name: "digest-value", Arity: -3, Flags: operator | command.Readonly,
				Keys: []command.KeySpec{command.KeysToEnd("RO", 2, 1)}, Syntax: "key [key ...]",
				Complexity: "O(N) where N is the size of the keys",
				Summary:    "Digests of the values of keys, as in Redis for the types that Redis has",
				Run:        debugDigestValue}),
			debug(&command.Command{Name: "error", Arity: 3, Flags: always, Syntax: "message",
				Summary: "Reply with an error", Run: debugError}),
			debug(&command.Command{Name: "help", Arity: 2, Flags: always,
				Summary: "Show helpful text about the different subcommands", Run: command.Help}),
			debug(&command.Command{Name: "loadaof", Arity: 2, Flags: operator | command.OwnLocks,
				Complexity: "O(N) where N is the size of all keys", Summary: "The same as DEBUG RELOAD",
				Refused: command.NotInCluster(errReload), Run: debugReload}),
			debug(&command.Command{Name: "log", Arity: 3, Flags: always, Syntax: "message",
				Summary: "Write a message to the server's log", Run: debugLog}),
			debug(&command.Command{Name: "object", Arity: 3, Flags: operator | command.Readonly,
				Keys: []command.KeySpec{command.Key("RO", 2)}, Syntax: "key",
				Summary: "Internal information about a key", Run: debugObject}),
			debug(&command.Command{Name: "reload", Arity: 2, Flags: operator | command.OwnLocks,
				Complexity: "O(N) where N is the size of all keys",
				Summary: "Save a snapshot if the server has a data directory, and rebuild all keys as if it " +
					"had been loaded",
				Refused: command.NotInCluster(errReload), Run: debugReload}),
			debug(&command.Command{Name: "set-active-expire", Arity: 3, Flags: always, Syntax: "<0 | 1>",
				Summary: "Whether expired keys are deleted in the background",
				Run:     debugSetActiveExpire}),
			debug(&command.Command{Name: "sleep", Arity: 3, Flags: always, Syntax: "seconds",
				Summary: "Block this connection for a number of seconds, with decimals", Run: debugSleep}),
		}},
	)
}

const errReload = engine.Error("ERR in a cluster, a node does not reload its keys: it has them from its groups. " +
	"It reads them from its disk when it is restarted")

// ErrDebugNotAllowed is the reply to clients that enable-debug-command excludes, as in Redis.
const ErrDebugNotAllowed = engine.Error("ERR DEBUG command not allowed. If the enable-debug-command option is set " +
	"to \"local\", you can run it from a local connection, " +
	"otherwise you need to set this option in the configuration file, and then restart the server.")

// ifDebugAllowed wraps a handler: it refuses clients that enable-debug-command excludes.
func ifDebugAllowed(run func(*command.Call) error) func(*command.Call) error {
	return func(c *command.Call) error {
		allowed := c.Env.Settings.Start.DebugCommand
		if allowed != "yes" && (allowed != "local" || !c.Conn.Local()) {
			return ErrDebugNotAllowed
		}
		return run(c)
	}
}

func debugLog(c *command.Call) error {
	c.Env.Log.Warn("DEBUG LOG", "client", c.Client, "message", fmt.Sprintf("%.1024s", c.Args.Next()))
	return c.ReplyOK(nil)
}

func debugSetActiveExpire(c *command.Call) error {
	active := c.Args.Integer()
	if err := c.Args.End(); err != nil {
		return err
	}
	c.Env.Settings.Paused.Store(active == 0)
	return c.ReplyOK(nil)
}

// debugSleep handles DEBUG SLEEP seconds. It blocks only this connection, where Redis blocks all.
// Within EXEC it sleeps after the locks are released.
func debugSleep(c *command.Call) error {
	seconds := c.Args.Float()
	if err := c.Args.End(); err != nil {
		return err
	}
	sleep := func() { time.Sleep(time.Duration(seconds * float64(time.Second))) }
	if c.Executing {
		p := command.Prepared{Command: c.Command, Words: c.Words}
		c.Conn.DeferUntilUnlocked(func() {
			start := c.Env.Time.Elapsed()
			sleep()
			c.Conn.LogIfSlow(p, c.Env.Time.Elapsed()-start)
		})
	} else {
		sleep()
	}
	return c.ReplyOK(nil)
}

func debugError(c *command.Call) error { return engine.Error(c.Args.Next()) }

// mergeDigests replies with the result that DEBUG DIGEST would have if all keys were in one
// database of one server.
func mergeDigests(m *command.Merger) {
	// the digest of a database that has keys: its number, and the sum of its keys
	var number, sum object.Digest
	number.MixNumber(0)
	sum.Combine(number)
	empty := sum
	all := m.Each(func(v wire.Value) {
		var one object.Digest
		if hex.Decode(one[:], v.Text); one != (object.Digest{}) {
			one.Combine(number)
			sum.Combine(one)
		}
	})
	if sum == empty {
		sum = object.Digest{}
	}
	if all {
		m.Reply.Status(hex.EncodeToString(sum[:]))
	}
}

func debugDigest(c *command.Call) error {
	writeDigest(&c.Reply, c.Tx.DigestAll())
	return nil
}

func debugDigestValue(c *command.Call) error {
	c.Reply.Array(c.Args.Left())
	for c.Args.More() {
		writeDigest(&c.Reply, c.Tx.Digest(c.Args.Key()))
	}
	return nil
}

func writeDigest(r *wire.Reply, d object.Digest) { r.Status(hex.EncodeToString(d[:])) }

// debugObject handles DEBUG OBJECT key. The fields have the names of Redis, which programs parse.
func debugObject(c *command.Call) error {
	k := c.Args.Key()
	at, ok := c.Tx.Address(k)
	if !ok {
		return engine.ErrNoSuchKey
	}
	encoding, _ := c.Tx.Encoding(k, c.Env.Settings.Packing())
	references, _ := c.Tx.References(k)
	idle, _ := c.Tx.Idle(k)
	length := -1 // without the type
	var many bool
	c.Tx.NoTouch(true, func() {
		content, _ := c.Tx.Content(k)
		if many = content.Many; !many {
			length += len(content.Append(nil))
		}
	})
	if many {
		return engine.ErrManyWritten
	}
	accessed := (c.Tx.Now()/1000 - idle) & eviction.ClockMask
	c.Reply.Status(fmt.Sprintf("Value at:%s refcount:%d encoding:%s serializedlength:%d lru:%d lru_seconds_idle:%d",
		at, references, encoding, length, accessed, idle))
	return nil
}

// debugReload handles DEBUG RELOAD and DEBUG LOADAOF: a snapshot and the log have the same content.
func debugReload(c *command.Call) error {
	if c.Env.Store != nil {
		if err := storage.SnapshotAfterCurrent(c.Env.Store); err != nil {
			c.Env.Log.Error("DEBUG RELOAD could not save", "client", c.Client, "error", err)
			return errNotSaved
		}
	}

	c.TakesLong()
	c.Tx.BeginAll(c.Env.Clock(), c.DB, false)
	keys := c.Tx.Reload()
	c.Tx.End()

	c.Env.Log.Warn("DEBUG RELOAD", "client", c.Client, "keys", keys)
	return c.ReplyOK(nil)
}
