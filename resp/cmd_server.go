package resp

import (
	"rlserver/engine"
	"rlserver/resp/command"
)

func init() {
	const operator = command.Admin | command.NoScript | command.Loading | command.Stale
	command.Register(
		&command.Command{Name: "shutdown", Arity: -1, Flags: operator | command.NoMulti | command.AllowBusy, Group: "server", Since: "1.0.0",
			Syntax:     "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
			Complexity: "O(N) when saving, where N is the total number of keys in all databases when saving data, otherwise O(1)",
			Summary:    "Synchronously save the dataset to disk and then shut down the server",
			Run:        shutdown},
		&command.Command{Name: "time", Arity: 1, Flags: command.Loading | command.Stale | command.Fast, Group: "server", Since: "2.6.0", Complexity: "O(1)",
			Tips: "nondeterministic_output", Summary: "Return the current server time", Run: tellTime},
	)
}

const errNoShutdown = engine.Error("ERR No shutdown in progress.")

// tellTime handles TIME by the clock that all limits go by, which counts milliseconds.
func tellTime(c *command.Call) error {
	now := c.Env.Clock()
	c.Reply.Array(2)
	c.Reply.BulkInteger(now / 1000)
	c.Reply.BulkInteger(now % 1000 * 1000)
	return nil
}

// shutdown handles SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]. It has no reply: the connection closes when the server is through.
// Without SAVE no snapshot is taken, as the log has all there is.
func shutdown(c *command.Call) error {
	s := sessionOf(c)
	var save, nosave, now, force, abort bool
	for c.Args.More() {
		switch {
		case c.Args.Word("SAVE"):
			save = true
		case c.Args.Word("NOSAVE"):
			nosave = true
		case c.Args.Word("NOW"):
			now = true
		case c.Args.Word("FORCE"):
			force = true
		case c.Args.Word("ABORT"):
			abort = true
		default:
			c.Args.Fail(engine.ErrSyntax)
		}
	}
	if save && nosave || abort && (save || nosave || now || force) {
		c.Args.Fail(engine.ErrSyntax)
	}
	if err := c.Args.End(); err != nil {
		return err
	}
	if abort {
		return errNoShutdown // it cannot be held up: by the time it could be asked to, it is through
	}
	if save && s.server.store != nil && s.server.loading.Load() == 0 { // half the data must not become a snapshot
		if err := s.server.saveFinally(); err != nil {
			s.server.Log.Error("SHUTDOWN SAVE could not save", "client", c.Client, "error", err, "stopping", force)
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
