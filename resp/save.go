package resp

import (
	"errors"

	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/storage"
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
	errNoStore = engine.Error("ERR this server has its data in memory alone: restart it with --appendonly yes to " +
		"have it on disk")
	// Redis says ERR and no more
	errNotSaved     = engine.Error("ERR the snapshot failed: the server's log says why")
	errSaving       = engine.Error("ERR Background save already in progress")
	errRewriting    = engine.Error("ERR Background append only file rewriting already in progress")
	errNotRewritten = engine.Error("ERR Can't execute an AOF background rewriting. Please check the server logs for " +
		"more information.")
)

// save handles SAVE. Other clients are served meanwhile.
func save(c *command.Call) error {
	s := sessionOf(c)
	if s.server.store == nil {
		return errNoStore
	}

	switch err := s.server.store.Snapshot(); {
	case errors.Is(err, storage.ErrBusy):
		return errSaving
	case err != nil:
		s.server.Log.Error("SAVE failed", "client", c.Client, "error", err)
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
	s := sessionOf(c)
	store := s.server.store
	switch {
	case store == nil:
		return errNoStore
	case c.Executing && store.Status().Saving:
		return busy
	case c.Executing:
		s.deferUntilUnlocked(func() {
			if err := store.SnapshotInBackground(); err != nil {
				s.server.Log.Error("a snapshot requested in a transaction could not be started", "client",
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
		s.server.Log.Error("a snapshot could not be started", "client", c.Client, "error", err)
		return failed
	}

	c.Reply.Status(doing + " started")
	return nil
}

// lastsave handles LASTSAVE. Before the first snapshot it replies, as Redis does, with the time of
// the start.
func lastsave(c *command.Call) error {
	s := sessionOf(c)
	var t storage.Status
	if s.server.store != nil {
		t = s.server.store.Status()
	}
	c.Reply.Integer(s.server.lastSave(t))
	return nil
}

// lastSave is the time of the last successful snapshot, or of the start if there is none, in Unix
// seconds.
func (s *Server) lastSave(t storage.Status) int64 {
	if t.LastSave > 0 {
		return t.LastSave / 1000
	}
	return s.started.Unix()
}

// Store keeps the data on disk. Without a Store the data is in memory alone, and SAVE and similar
// commands return an error that says how to enable it. Any goroutine may call the methods.
type Store interface {
	// Refusal returns why changes are refused now, as the text after MISCONF; "": they are
	// accepted. It is called before each such command, so it must be fast.
	Refusal() string
	// Snapshot takes a snapshot and returns when it is on the disk. It returns storage.ErrBusy if
	// one is being taken already.
	Snapshot() error
	// SnapshotInBackground starts a snapshot. It returns storage.ErrBusy if one is being taken
	// already.
	SnapshotInBackground() error
	// Configure applies what CONFIG SET has changed. Calls do not overlap.
	Configure(storage.Settings)
	// Status may be called under locks of the engine: it must not wait for a goroutine that takes
	// them.
	Status() storage.Status
}

// refusal returns Store.Refusal, or "" without a store.
func (s *Server) refusal() string {
	if s.store == nil {
		return ""
	}
	return s.store.Refusal()
}

// SetLoading sets whether the data is being loaded: until then clients get LOADING. A new server is
// not loading.
func (s *Server) SetLoading(yes bool) {
	if yes {
		s.loading.Store(s.Clock())
	} else {
		s.loading.Store(0)
	}
}

// configure passes the current settings to the store.
func (s *Server) configure() {
	if s.store == nil {
		return
	}
	s.configuring.Lock() // so that the newest settings are applied last
	defer s.configuring.Unlock()
	s.store.Configure(s.Settings.Store())
}
