package server

import (
	"errors"

	"rlserver/engine"
	"rlserver/internal/storage"
	"rlserver/resp/command"
)

func init() {
	const saving = command.Admin | command.NoScript | command.NoAsyncLoading
	command.Register("server",
		&command.Command{Name: "save", Arity: 1, Flags: saving | command.NoMulti | command.OwnLocks, Run: save},
		&command.Command{Name: "bgsave", Arity: -1, Flags: saving, Run: bgsave},
		&command.Command{Name: "bgrewriteaof", Arity: 1, Flags: saving, Run: bgrewriteaof},
		&command.Command{Name: "lastsave", Arity: 1, Flags: command.Fast | command.Loading | command.Stale,
			Categories: "admin dangerous", Run: lastsave},
	)
}

const (
	errNoStore = engine.Error("ERR this server has its data only in memory: restart it with --appendonly yes to " +
		"have it on disk")
	// Redis only says ERR
	errNotSaved   = engine.Error("ERR the snapshot failed: the server's log says why")
	errSaving     = engine.Error("ERR Background save already in progress")
	errRewriting  = engine.Error("ERR Background append only file rewriting already in progress")
	errOtherChild = engine.Error("ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE " +
		"SCHEDULE in order to schedule a BGSAVE whenever possible.")
	errNotRewritten = engine.Error("ERR Can't execute an AOF background rewriting. Please check the server logs for " +
		"more information.")
)

// save handles SAVE. Other clients are served while it runs.
func save(c *command.Call) error {
	if c.Env.Store == nil {
		return errNoStore
	}

	snapshot := c.Env.Store.Snapshot
	if _, rewriting, _ := c.Env.Saves.Running(); rewriting { // a save lacks what the log has since
		snapshot = func() error { return storage.SnapshotAfterCurrent(c.Env.Store) }
	}
	switch err := snapshot(); {
	case errors.Is(err, storage.ErrBusy):
		return errSaving
	case err != nil:
		c.Env.Log.Error("SAVE failed", "client", c.Client, "error", err)
		return errNotSaved
	}

	return c.ReplyOK(nil)
}

// startable returns why no snapshot can be started now, or nil. One that needs the keys of a script
// that runs for too long would only end with the script.
func startable(c *command.Call) error {
	switch {
	case c.Env.Scripts.Busy() > 0:
		return command.ErrBusy
	case c.Env.Store == nil:
		return errNoStore
	}
	return nil
}

func bgsave(c *command.Call) error {
	schedule := c.Args.Word("SCHEDULE")
	if err := c.Args.End(); err != nil {
		return err
	}
	if err := startable(c); err != nil {
		return err
	}
	scheduled, err := c.Env.Saves.Save(schedule, c.Executing)
	return replySaving(c, "Background saving", scheduled, err, errNotSaved)
}

// bgrewriteaof handles BGREWRITEAOF: a snapshot also starts a new log.
func bgrewriteaof(c *command.Call) error {
	if err := startable(c); err != nil {
		return err
	}
	scheduled, err := c.Env.Saves.Rewrite(c.Executing)
	return replySaving(c, "Background append only file rewriting", scheduled, err, errNotRewritten)
}

// replySaving replies to a request of a snapshot. Within EXEC it starts after the locks are
// released.
func replySaving(c *command.Call, doing string, scheduled bool, err error, failed engine.Error) error {
	switch {
	case errors.Is(err, storage.ErrBusy):
		return errSaving
	case errors.Is(err, storage.ErrRewriting):
		return errRewriting
	case errors.Is(err, storage.ErrOther):
		return errOtherChild
	case err != nil:
		c.Env.Log.Error("a snapshot could not be started", "client", c.Client, "error", err)
		return failed
	}
	if scheduled {
		c.Conn.DeferUntilUnlocked(c.Env.Saves.Start)
		c.Reply.Status(doing + " scheduled")
		return nil
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
	return c.ReplyInteger(lastSaveTime(c.Env, t), nil)
}

// lastSaveTime returns the time of the last successful snapshot, or of the start if there is none,
// in Unix seconds.
func lastSaveTime(e *command.Env, t storage.Status) int64 {
	if t.LastSave > 0 {
		return t.LastSave / 1000
	}
	return e.Started.Unix()
}
