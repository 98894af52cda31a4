package resp

import (
	"strings"

	"rlserver/resp/command"
	"rlserver/resp/pubsub"
	"rlserver/resp/tracking"
)

// Track implements the connection of command.Call.
func (s *session) Track() *tracking.Client {
	if s.Tracked == nil {
		kinds := [...]tracking.Kind{ordinary: tracking.Ordinary, proxied: tracking.Proxied, forOtherNode: tracking.Node}
		s.Tracked = s.server.Tracking.NewClient(s.messages.Join(s.Reply.RESP3), kinds[s.role])
		s.profile.tracking.Store(s.Tracked)
	}
	return s.Tracked
}

// findTarget returns a client that messages are redirected to, or nil.
func (s *Server) findTarget(id int64) *pubsub.Client {
	s.mu.Lock()
	ss := s.sessions[id]
	s.mu.Unlock()
	if ss == nil || ss.isForNode() || ss.profile.killed.Load() {
		return nil
	}
	return ss.messages.Target(func() bool { return ss.profile.resp.Load() == 3 })
}

// endCaching ends what CLIENT CACHING has begun: it is about one call, or transaction.
func (s *session) endCaching() {
	if s.Tracked.Caching && !s.transaction.open && !strings.HasPrefix(s.Command.FullName(), "client|") {
		s.Tracked.Caching = false
	}
}

// rememberPassed has the keys tracked of calls that another node runs, before it does.
func (s *session) rememberPassed(calls ...command.Prepared) {
	if !s.Tracked.Remembers() {
		return
	}
	for i := range calls {
		if calls[i].Command.Flags&command.Write != 0 {
			continue // scripts may read keys
		}
		s.Hasher.Reset()
		s.Hasher.Add(&calls[i])
		for _, k := range s.Hasher.Keys {
			s.Tracked.Remember(&s.messages, k.Name)
		}
	}
}
