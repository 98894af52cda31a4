package resp

import (
	"fmt"
	"time"

	"rlserver/engine"
)

func init() {
	const operator = admin | noScript | loading | stale
	register(
		&command{name: "debug", arity: -2, flags: operator, group: "server", since: "1.0.0", complexity: "Depends on subcommand.",
			summary: "A container for debugging commands",
			subs: []*command{
				{name: "help", arity: 2, flags: operator, group: "server", since: "1.0.0", complexity: "O(1)",
					summary: "Show helpful text about the different subcommands", run: debugging(help)},
				{name: "log", arity: 3, flags: operator, group: "server", since: "1.0.0", complexity: "O(1)",
					syntax: "message", summary: "Write a message to the server's log", run: debugging(debugLog)},
				{name: "set-active-expire", arity: 3, flags: operator, group: "server", since: "1.0.0", complexity: "O(1)",
					syntax: "<0 | 1>", summary: "Whether keys are deleted when their time has come although nobody asks for them",
					run: debugging(debugSetActiveExpire)},
				{name: "sleep", arity: 3, flags: operator, group: "server", since: "1.0.0", complexity: "O(1)",
					syntax: "seconds", summary: "Hold this connection for so many seconds, decimals allowed", run: debugging(debugSleep)},
			}},
		&command{name: "memory", arity: -2, group: "server", since: "4.0.0", complexity: "Depends on subcommand.",
			summary: "A container for memory diagnostics commands",
			subs: []*command{
				{name: "help", arity: 2, flags: loading | stale, group: "server", since: "4.0.0", complexity: "O(1)",
					summary: "Show helpful text about the different subcommands", run: help},
				{name: "usage", arity: -3, flags: readonly, keys: []keySpec{key("RO", 2)}, group: "server", since: "4.0.0",
					syntax: "key [SAMPLES count]", complexity: "O(N) where N is the number of samples.",
					summary: "Estimate the memory usage of a key", run: memoryUsage},
			}},
		&command{name: "shutdown", arity: -1, flags: operator | noMulti | allowBusy, group: "server", since: "1.0.0",
			syntax:     "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
			complexity: "O(N) when saving, where N is the total number of keys in all databases when saving data, otherwise O(1)",
			summary:    "Synchronously save the dataset to disk and then shut down the server",
			run:        shutdown},
		&command{name: "time", arity: 1, flags: loading | stale | fast, group: "server", since: "2.6.0", complexity: "O(1)",
			tips: "nondeterministic_output", summary: "Return the current server time", run: tellTime},
	)
}

const (
	errDebugNotAllowed = engine.Error("ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you can run it from a local connection, " +
		"otherwise you need to set this option in the configuration file, and then restart the server.")
	errNoShutdown = engine.Error("ERR No shutdown in progress.")
)

// debugging refuses a subcommand of DEBUG to those who may not use it.
func debugging(run func(*call) error) func(*call) error {
	return func(c *call) error {
		allowed := c.server.settings.start.DebugCommand
		if allowed != "yes" && (allowed != "local" || !local(c.guard.RemoteAddr())) {
			return errDebugNotAllowed
		}
		return run(c)
	}
}

func debugLog(c *call) error {
	c.server.log.Warn("DEBUG LOG", "client", c.id, "message", fmt.Sprintf("%.1024s", c.args.next()))
	c.reply.ok()
	return nil
}

func debugSetActiveExpire(c *call) error {
	active := c.args.integer()
	if err := c.args.end(); err != nil {
		return err
	}
	c.server.settings.paused.Store(active == 0)
	c.reply.ok()
	return nil
}

// debugSleep holds one connection, where Redis holds all: within EXEC not before the locks are let go of.
func debugSleep(c *call) error {
	seconds := c.args.float()
	if err := c.args.end(); err != nil {
		return err
	}
	sleep := func() { time.Sleep(time.Duration(seconds * float64(time.Second))) }
	if c.executing {
		c.afterwards = append(c.afterwards, sleep)
	} else {
		sleep()
	}
	c.reply.ok()
	return nil
}

// memoryUsage handles MEMORY USAGE key [SAMPLES count]. What a collection weighs is known, so there is nothing to sample.
func memoryUsage(c *call) error {
	k := c.args.key()
	for c.args.more() {
		if !c.args.word("SAMPLES") {
			return engine.ErrSyntax
		}
		if c.args.integer() < 0 {
			c.args.fail(engine.ErrSyntax)
		}
	}
	if err := c.args.end(); err != nil {
		return err
	}

	bytes, ok := c.tx.MemoryUsage(k)

	if !ok {
		c.reply.null()
		return nil
	}
	c.reply.integer(bytes)
	return nil
}

// tellTime handles TIME by the clock that all limits go by, which counts milliseconds.
func tellTime(c *call) error {
	now := c.server.clock()
	c.reply.array(2)
	c.reply.bulkInteger(now / 1000)
	c.reply.bulkInteger(now % 1000 * 1000)
	return nil
}

// shutdown handles SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]. It has no reply: the connection closes when the server is through.
// Without SAVE no snapshot is taken, as the log has all there is.
func shutdown(c *call) error {
	var save, nosave, now, force, abort bool
	for c.args.more() {
		switch {
		case c.args.word("SAVE"):
			save = true
		case c.args.word("NOSAVE"):
			nosave = true
		case c.args.word("NOW"):
			now = true
		case c.args.word("FORCE"):
			force = true
		case c.args.word("ABORT"):
			abort = true
		default:
			c.args.fail(engine.ErrSyntax)
		}
	}
	if save && nosave || abort && (save || nosave || now || force) {
		c.args.fail(engine.ErrSyntax)
	}
	if err := c.args.end(); err != nil {
		return err
	}
	if abort {
		return errNoShutdown // it cannot be held up: by the time it could be asked to, it is through
	}
	if save && c.server.store != nil && c.server.loading.Load() == 0 { // half the data must not become a snapshot
		if err := c.server.saveFinally(); err != nil {
			c.server.log.Error("SHUTDOWN SAVE could not save", "client", c.id, "error", err, "stopping", force)
			if !force {
				return errCannotShutDown
			}
		}
	}

	c.closing = true
	c.server.unsaved.Store(nosave)
	c.server.requestShutdown()
	return nil
}
