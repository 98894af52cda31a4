package server

import (
	"errors"

	"rlserver/engine"
	"rlserver/internal/storage"
	"rlserver/resp/command"
)

func init() {
	const saving = command.Admin | command.NoScript | command.NoAsyncLoading
	command.Register(
		&command.Command{Name: "save", Arity: 1, Flags: saving | command.NoMulti, Group: "server",
			Since: "1.0.0", Complexity: "O(N) where N is the total number of keys in all databases",
			Summary: "Synchronously save the dataset to disk", Run: save},
		&command.Command{Name: "bgsave", Arity: -1, Flags: saving, Group: "server", Since: "1.0.0",
			Complexity: "O(1)", Syntax: "[SCHEDULE]", Summary: "Asynchronously save the dataset to disk",
			Run: bgsave},
		&command.Command{Name: "bgrewriteaof", Arity: 1, Flags: saving, Group: "server", Since: "1.0.0",
			Complexity: "O(1)", Summary: "Asynchronously rewrite the append-only file", Run: bgrewriteaof},
		&command.Command{Name: "lastsave", Arity: 1, Flags: command.Fast | command.Loading | command.Stale,
			Group: "server", Since: "1.0.0", Complexity: "O(1)", Categories: "admin dangerous",
			Tips:    "nondeterministic_output",
			Summary: "Get the UNIX time stamp of the last successful save to disk", Run: lastsave},
	)
}

const (
	errNoStore = engine.Error("ERR this server has its data only in memory: restart it with --appendonly yes to " +
		"have it on disk")
	// Redis only says ERR
	errNotSaved     = engine.Error("ERR the snapshot failed: the server's log says why")
	errSaving       = engine.Error("ERR Background save already in progress")
	errRewriting    = engine.Error("ERR Background append only file rewriting already in progress")
	errNotRewritten = engine.Error("ERR Can't execute an AOF background rewriting. Please check the server logs for " +
		"more information.")
)

// save handles SAVE. Other clients are served while it runs.
func save(c *command.Call) error {
	if c.Env.Store == nil {
		return errNoStore
	}

	switch err := c.Env.Store.Snapshot(); {
	case errors.Is(err, storage.ErrBusy):
		return errSaving
	case err != nil:
		c.Env.Log.Error("SAVE failed", "client", c.Client, "error", err)
		return errNotSaved
	}

	c.Reply.OK()
	return nil
}

// bgsave handles BGSAVE [SCHEDULE]. SCHEDULE changes nothing: only another snapshot could delay it,
// and that is an error.
func bgsave(c *command.Call) error {
	c.Args.Word("SCHEDULE")
	if err := c.Args.End(); err != nil {
		return err
	}
	return saveInBackground(c, "Background saving", errSaving, errNotSaved)
}

// bgrewriteaof handles BGREWRITEAOF: a snapshot also starts a new log.
func bgrewriteaof(c *command.Call) error {
	return saveInBackground(c, "Background append only file rewriting", errRewriting, errNotRewritten)
}

// saveInBackground starts a snapshot and replies with the text of a command. Within EXEC it starts
// after the locks are released.
func saveInBackground(c *command.Call, doing string, busy, failed engine.Error) error {
	store := c.Env.Store
	switch {
	case store == nil:
		return errNoStore
	case c.Executing && store.Status().Saving:
		return busy
	case c.Executing:
		c.Conn.DeferUntilUnlocked(func() {
			if err := store.SnapshotInBackground(); err != nil {
				c.Env.Log.Error("a snapshot requested in a transaction could not be started", "client",
					c.Client, "error", err)
			}
		})
		c.Reply.Status(doing + " scheduled")
		return nil
	}

	switch err := store.SnapshotInBackground(); {
	case errors.Is(err, storage.ErrBusy):
		return busy
	case err != nil:
		c.Env.Log.Error("a snapshot could not be started", "client", c.Client, "error", err)
		return failed
	}

	c.Reply.Status(doing + " started")
	return nil
}

// lastsave handles LASTSAVE. Before the first snapshot it replies, as Redis does, with the time of
// the start.
func lastsave(c *command.Call) error {
	var t storage.Status
	if c.Env.Store != nil {
		t = c.Env.Store.Status()
	}
	c.Reply.Integer(lastSaveTime(c.Env, t))
	return nil
}

// lastSaveTime returns the time of the last successful snapshot, or of the start if there is none,
// in Unix seconds.
func lastSaveTime(e *command.Env, t storage.Status) int64 {
	if t.LastSave > 0 {
		return t.LastSave / 1000
	}
	return e.Started.Unix()
}
