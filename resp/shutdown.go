package resp

import (
	"context"
	"errors"
	"rlserver/engine"
	"rlserver/resp/command"
	"time"
)

func init() {
	const operator = command.Admin | command.NoScript | command.Loading | command.Stale
	command.Register(
		&command.Command{
			Name: "shutdown", Arity: -1, Flags: operator | command.NoMulti | command.AllowBusy, Group: "server",
			Since: "1.0.0", Syntax: "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
			Complexity: "O(N) when saving, where N is the total number of keys in all databases when saving data, " +
				"otherwise O(1)",
			Summary: "Synchronously save the dataset to disk and then shut down the server",
			Run:     shutdown,
		},
	)
}

// ShutdownRequested is closed when a client has sent SHUTDOWN.
func (s *Server) ShutdownRequested() <-chan struct{} { return s.shutdown }

// EndsUnsaved tells whether a client has sent SHUTDOWN NOSAVE.
func (s *Server) EndsUnsaved() bool { return s.unsaved.Load() }

func (s *Server) requestShutdown() { s.shutdownOnce.Do(func() { close(s.shutdown) }) }

// Shutdown lets go of the listeners and of the clients: each gets the answers to what it has sent so far, then its connection is closed.
// When the context ends first, the connections that are left are cut off; it returns how many.
func (s *Server) Shutdown(ctx context.Context) (left int) {
	s.mu.Lock()
	s.draining = true
	for _, ln := range s.listeners {
		ln.Close()
	}
	for _, ss := range s.sessions {
		ss.guard.Drain()
	}
	s.mu.Unlock()

	if left = s.waitForSessions(ctx); left > 0 {
		s.cutOff()
	}
	s.drainedOnce.Do(func() { close(s.drained) }) // lets redcon's accept loops end, which close what is left
	s.serving.Wait()
	return left
}

// cutOff closes the sockets of those who are left. What runs for them goes on, but no reply leaves any more.
func (s *Server) cutOff() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ss := range s.sessions {
		ss.guard.Conn.Close()
	}
}

// waitForSessions waits until all are gone. Sessions end by themselves and tell nobody; asking now and then is simpler than a count
// that everybody keeps.
func (s *Server) waitForSessions(ctx context.Context) (left int) {
	for {
		if left = s.clients(); left == 0 {
			return 0
		}
		select {
		case <-ctx.Done():
			return left
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *Server) clients() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

const errNoShutdown = engine.Error("ERR No shutdown in progress.")

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
