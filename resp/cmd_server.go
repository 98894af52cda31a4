package resp

import "rlserver/engine"

func init() {
	const operator = admin | noScript | loading | stale
	register(
		&command{name: "shutdown", arity: -1, flags: operator | noMulti | allowBusy, group: "server", since: "1.0.0",
			syntax:     "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
			complexity: "O(N) when saving, where N is the total number of keys in all databases when saving data, otherwise O(1)",
			summary:    "Synchronously save the dataset to disk and then shut down the server",
			run:        shutdown},
		&command{name: "time", arity: 1, flags: loading | stale | fast, group: "server", since: "2.6.0", complexity: "O(1)",
			tips: "nondeterministic_output", summary: "Return the current server time", run: tellTime},
	)
}

const errNoShutdown = engine.Error("ERR No shutdown in progress.")

// tellTime handles TIME by the clock that all limits go by, which counts milliseconds.
func tellTime(c *call) error {
	now := c.env.clock()
	c.reply.array(2)
	c.reply.bulkInteger(now / 1000)
	c.reply.bulkInteger(now % 1000 * 1000)
	return nil
}

// shutdown handles SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]. It has no reply: the connection closes when the server is through.
// Without SAVE no snapshot is taken, as the log has all there is.
func shutdown(c *call) error {
	s := sessionOf(c)
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
	if save && s.server.store != nil && s.server.loading.Load() == 0 { // half the data must not become a snapshot
		if err := s.server.saveFinally(); err != nil {
			s.server.log.Error("SHUTDOWN SAVE could not save", "client", c.client, "error", err, "stopping", force)
			if !force {
				return errCannotShutDown
			}
		}
	}

	s.closing = true
	s.server.unsaved.Store(nosave)
	s.server.requestShutdown()
	return nil
}
