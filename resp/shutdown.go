package resp

import (
	"context"
	"time"

	"rlserver/engine"
	"rlserver/internal/storage"
	"rlserver/resp/command"
)

func init() {
	const operator = command.Admin | command.NoScript | command.Loading | command.Stale
	command.Register("server",
		&command.Command{Name: "shutdown", Arity: -1, Flags: operator | command.NoMulti | command.AllowBusy,
			Run: shutdown},
	)
}

const (
	errNoShutdown     = engine.Error("ERR No shutdown in progress.")
	errCannotShutDown = engine.Error("ERR Errors trying to SHUTDOWN. Check logs.")
)

// shutdown handles SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]. It has no reply: the connection
// closes when the server has ended. Without SAVE no snapshot is taken, as the log has all data.
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
		return errNoShutdown // a shutdown that has begun cannot be stopped
	}
	if save {
		if err := s.server.saveBeforeShutdown(c.Client, force); err != nil && !force {
			return errCannotShutDown
		}
	}

	s.closing = true
	s.server.noSave.Store(nosave)
	s.server.shutdownOnce.Do(func() { close(s.server.shutdown) })
	return nil
}

// saveBeforeShutdown takes a snapshot, unless there is no store or the data is still being loaded:
// part of the data must not become a snapshot. force means that the server stops even if the
// snapshot fails; it is only logged.
func (s *Server) saveBeforeShutdown(client int64, force bool) error {
	if s.Store == nil || s.executor.LoadingSince() != 0 {
		return nil
	}
	err := storage.SnapshotAfterCurrent(s.Store)
	if err != nil {
		s.Log.Error("SHUTDOWN SAVE could not save", "client", client, "error", err, "stopping", force)
	}
	return err
}

// ShutdownRequested returns a channel that is closed when a client has sent SHUTDOWN.
func (s *Server) ShutdownRequested() <-chan struct{} { return s.shutdown }

// EndsUnsaved reports whether a client has sent SHUTDOWN NOSAVE.
func (s *Server) EndsUnsaved() bool { return s.noSave.Load() }

// Shutdown closes the listeners and drains the connections: each client gets the replies to the
// commands that it has sent in full, then its connection is closed. When the context ends first,
// Shutdown closes the connections that are left, and returns their number.
func (s *Server) Shutdown(ctx context.Context) (left int) {
	s.ports.Close()
	s.mu.Lock()
	s.draining = true
	for _, ss := range s.sessions {
		ss.guard.Drain()
	}
	s.mu.Unlock()

	if left = s.waitForSessions(ctx); left > 0 {
		s.Scripts.Stop()
		// their calls run to the end, but no reply is sent
		s.each(func(ss *session) { ss.guard.Conn.Close() })
	}
	s.ports.End()
	return left
}

// waitForSessions waits until no session is left or the context ends, and returns how many are
// left. After SHUTDOWN NOSAVE it does not wait for scripts that run for too long. It polls, which
// is simpler than a signal at the end of each session.
func (s *Server) waitForSessions(ctx context.Context) (left int) {
	for {
		s.mu.Lock()
		left = len(s.sessions)
		s.mu.Unlock()
		if left == 0 || s.noSave.Load() && left <= s.Scripts.Busy() {
			return left
		}
		select {
		case <-ctx.Done():
			return left
		case <-time.After(5 * time.Millisecond):
		}
	}
}
