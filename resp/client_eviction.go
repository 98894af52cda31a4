package resp

import (
	"cmp"
	"rlserver/resp/clientmem"
	"slices"
	"time"
)

// evictClients closes the largest clients of a pool until the others are within its limit. It may
// be called under any lock except Server.mu and those below it, see the order of locks in doc.go.
func (s *Server) evictClients(p *clientmem.Pool) {
	s.memory.Evicting.Lock()
	defer s.memory.Evicting.Unlock()
	if !p.Full() {
		return
	}
	type candidate struct {
		session *session
		bytes   int64
	}
	var all []candidate
	s.mu.Lock()
	for _, ss := range s.sessions {
		if bytes := ss.guard.Memory.Total(); bytes > 0 && ss.pool() == p {
			all = append(all, candidate{ss, bytes})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, c := range all {
		if !p.Full() {
			return
		}
		s.evict(c.session, c.bytes)
	}
}

// evict closes a client that holds bytes of memory.
func (s *Server) evict(ss *session, bytes int64) {
	line := ss.describe()
	if !ss.guard.Memory.Close() {
		return
	}
	ss.profile.killed.Store(true)
	ss.guard.Conn.Close() // ends its Read and its Write, wherever it is
	s.memory.Evicted.Add(1)
	if more, ok := s.allows(&s.evictionLog, time.Second); ok {
		s.Log.Warn("a client was evicted: clients hold more memory than they may", "held", bytes, "client", line,
			"others_since_the_last_line", more)
	}
}

// pool returns the pool that counts the client; nil: none.
func (s *session) pool() *clientmem.Pool { return s.guard.Memory.Pool() }

// choosePool moves the client to the pool that it belongs to now.
func (s *session) choosePool() {
	m := &s.server.memory
	s.guard.Exempt.Store(s.authenticated && s.profile.noEvict.Load())
	switch {
	case !s.authenticated:
		s.guard.Memory.MoveTo(&m.Unauthenticated)
	case s.guard.Exempt.Load():
		s.guard.Memory.MoveTo(&m.Exempt)
	default:
		s.guard.Memory.MoveTo(&m.Normal)
	}
}
