package resp

// totals are what a server counts from its start, or from the last CONFIG RESETSTAT.
type totals struct {
	connections, rejected int64
	calls, errors         int64
	batches               int64 // in which the calls came
	in, out               int64 // bytes
}

// add counts what a session has done.
func (t *totals) add(s *session) {
	t.calls += s.profile.calls.Load()
	t.errors += s.profile.errors.Load()
	t.batches += s.profile.batches.Load()
	t.in += s.guard.BytesIn.Load()
	t.out += s.guard.BytesOut.Load()
}

func (t totals) minus(u totals) totals {
	return totals{t.connections - u.connections, t.rejected - u.rejected, t.calls - u.calls, t.errors - u.errors, t.batches - u.batches, t.in - u.in, t.out - u.out}
}

func (s *Server) totals() totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sinceStart().minus(s.reset)
}

// Load is how many calls have been answered since the start and in how many batches they came: how deep clients pipeline.
func (s *Server) Load() (calls, batches int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.sinceStart()
	return sum.calls, sum.batches
}

// resetTotals begins to count anew.
func (s *Server) resetTotals() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reset = s.sinceStart()
}

// sinceStart adds what the sessions of now have done to what those did that are gone; s.mu is held.
func (s *Server) sinceStart() totals {
	sum := s.gone
	for _, ss := range s.sessions {
		sum.add(ss)
	}
	return sum
}
