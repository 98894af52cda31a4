package resp

import (
	"context"
	"time"
)

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
