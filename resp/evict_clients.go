package resp

import (
	"cmp"
	"slices"
)

// relieve closes the largest clients of a pool until the others hold no more than they may. It may be called under any lock but Server.mu.
func (s *Server) relieve(p *pool) {
	s.memory.evicting.Lock()
	defer s.memory.evicting.Unlock()
	if !p.crowded() {
		return
	}
	type candidate struct {
		session *session
		bytes   int64
	}
	var all []candidate
	s.mu.Lock()
	for _, ss := range s.sessions {
		if bytes := ss.guard.held.total(); bytes > 0 && ss.pool() == p {
			all = append(all, candidate{ss, bytes})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, c := range all {
		if !p.crowded() {
			return
		}
		s.evict(c.session, c.bytes)
	}
}

// evict closes a client for what it holds.
func (s *Server) evict(ss *session, bytes int64) {
	line := ss.describe()
	if !ss.guard.held.close() {
		return
	}
	ss.profile.killed.Store(true)
	ss.guard.Conn.Close() // wakes its Read and fails its Write, wherever it is
	s.memory.evicted.Add(1)
	if more, ok := s.evictions.due(s.elapsed()); ok {
		s.log.Warn("a client was evicted: clients hold more memory than they may", "held", bytes, "client", line, "others_since_the_last_line", more)
	}
}

// pool is the one that a client is counted in.
func (s *session) pool() *pool {
	h := &s.guard.held
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pool
}

// choosePool has the client counted where it belongs now.
func (s *session) choosePool() {
	m := &s.server.memory
	s.guard.exempt.Store(s.authenticated && s.profile.noEvict.Load())
	switch {
	case !s.authenticated:
		s.guard.held.moveTo(&m.unauthenticated)
	case s.guard.exempt.Load():
		s.guard.held.moveTo(&m.exempt)
	default:
		s.guard.held.moveTo(&m.normal)
	}
}
