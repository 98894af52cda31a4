package resp

import (
	"errors"
	"time"

	"rlserver/engine"
)

func init() {
	const saving = admin | noScript | noAsyncLoading
	register(
		&command{name: "save", arity: 1, flags: saving | noMulti, group: "server", since: "1.0.0",
			complexity: "O(N) where N is the total number of keys in all databases",
			summary:    "Synchronously save the dataset to disk", run: save},
		&command{name: "bgsave", arity: -1, flags: saving, group: "server", since: "1.0.0", complexity: "O(1)",
			syntax: "[SCHEDULE]", summary: "Asynchronously save the dataset to disk", run: bgsave},
		&command{name: "bgrewriteaof", arity: 1, flags: saving, group: "server", since: "1.0.0", complexity: "O(1)",
			summary: "Asynchronously rewrite the append-only file", run: bgrewriteaof},
		&command{name: "lastsave", arity: 1, flags: fast | loading | stale, group: "server", since: "1.0.0", complexity: "O(1)",
			categories: "admin dangerous", tips: "nondeterministic_output",
			summary: "Get the UNIX time stamp of the last successful save to disk", run: lastsave},
	)
}

const (
	errNoStore        = engine.Error("ERR this server has its data in memory alone: restart it with --appendonly yes to have it on disk")
	errNotSaved       = engine.Error("ERR the snapshot failed: the server's log says why") // Redis says ERR and no more
	errSaving         = engine.Error("ERR Background save already in progress")
	errRewriting      = engine.Error("ERR Background append only file rewriting already in progress")
	errNotRewritten   = engine.Error("ERR Can't execute an AOF background rewriting. Please check the server logs for more information.")
	errCannotShutDown = engine.Error("ERR Errors trying to SHUTDOWN. Check logs.")
)

// save handles SAVE. Others are served meanwhile.
func save(c *call) error {
	s := sessionOf(c)
	if s.server.store == nil {
		return errNoStore
	}

	switch err := s.server.store.Save(); {
	case errors.Is(err, ErrSaving):
		return errSaving
	case err != nil:
		s.server.log.Error("SAVE failed", "client", c.client, "error", err)
		return errNotSaved
	}

	c.reply.ok()
	return nil
}

// bgsave handles BGSAVE [SCHEDULE]. There is nothing but another snapshot that it would have to be scheduled after.
func bgsave(c *call) error {
	c.args.word("SCHEDULE")
	if err := c.args.end(); err != nil {
		return err
	}
	return c.saveInBackground("Background saving", errSaving, errNotSaved)
}

// bgrewriteaof handles BGREWRITEAOF: a snapshot is also what makes the log begin anew.
func bgrewriteaof(c *call) error {
	return c.saveInBackground("Background append only file rewriting", errRewriting, errNotRewritten)
}

// saveInBackground begins a snapshot and says so in the words of a command. Within EXEC it waits until the locks are let go of.
func (c *call) saveInBackground(doing string, busy, failed engine.Error) error {
	s := sessionOf(c)
	store := s.server.store
	switch {
	case store == nil:
		return errNoStore
	case c.executing && store.Status().Saving:
		return busy
	case c.executing:
		s.afterwards = append(s.afterwards, func() {
			if err := store.SaveInBackground(); err != nil {
				s.server.log.Error("the snapshot that a transaction asked for was not begun", "client", c.client, "error", err)
			}
		})
		c.reply.status(doing + " scheduled")
		return nil
	}

	switch err := store.SaveInBackground(); {
	case errors.Is(err, ErrSaving):
		return busy
	case err != nil:
		s.server.log.Error("a snapshot could not be begun", "client", c.client, "error", err)
		return failed
	}

	c.reply.status(doing + " started")
	return nil
}

// lastsave handles LASTSAVE. Before the first snapshot it answers, as Redis does, with the time of the start.
func lastsave(c *call) error {
	s := sessionOf(c)
	var t StoreStatus
	if s.server.store != nil {
		t = s.server.store.Status()
	}
	c.reply.integer(s.server.lastSave(t))
	return nil
}

// lastSave is the time of the last good snapshot or else of the start, in Unix seconds.
func (s *Server) lastSave(t StoreStatus) int64 {
	if t.LastSave > 0 {
		return t.LastSave / 1000
	}
	return s.started.Unix()
}

// saveFinally takes the snapshot that SHUTDOWN SAVE asks for, after the one that may be under way: that lacks the last changes.
func (s *Server) saveFinally() error {
	for {
		err := s.store.Save()
		if !errors.Is(err, ErrSaving) {
			return err
		}
		time.Sleep(saveRetry)
	}
}

// saveRetry is how often SHUTDOWN SAVE asks whether the snapshot that is under way has come to its end.
const saveRetry = 10 * time.Millisecond
