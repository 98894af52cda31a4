package resp

// totals are counters over all sessions since the start or the last CONFIG RESETSTAT.
type totals struct {
	connections, rejected int64
	calls, errors         int64
	batches               int64 // that the calls came in
	in, out               int64 // bytes
}

// add adds the counters of a session.
func (t *totals) add(s *session) {
	t.calls += s.profile.calls.Load()
	t.errors += s.profile.errors.Load()
	t.batches += s.profile.batches.Load()
	t.in += s.guard.BytesIn.Load()
	t.out += s.guard.BytesOut.Load()
}

func (t totals) minus(u totals) totals {
	return totals{
		t.connections - u.connections, t.rejected - u.rejected, t.calls - u.calls, t.errors - u.errors,
		t.batches - u.batches, t.in - u.in, t.out - u.out,
	}
}

func (s *Server) totals() totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sinceStart().minus(s.baseline)
}

// Load returns the number of calls since the start and of the batches they came in: their quotient
// is the depth of pipelines.
func (s *Server) Load() (calls, batches int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.sinceStart()
	return sum.calls, sum.batches
}

// resetTotals makes totals count from zero.
func (s *Server) resetTotals() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.baseline = s.sinceStart()
}

// sinceStart returns the totals of all sessions, open and ended. s.mu is held.
func (s *Server) sinceStart() totals {
	sum := s.ended
	for _, ss := range s.sessions {
		sum.add(ss)
	}
	return sum
}
