package zset

// Prefetch loads the set itself into the CPU's caches, for a PrefetchLast soon after. The results
// of both have no meaning, but the caller must use them so that the compiler does not remove the
// loads.
func (s *Set) Prefetch() (n int) {
	if s.log != nil {
		n = s.log.Prefetch()
	}
	if r := s.rest; r != nil {
		if r.unindexed { // the fields that are read are at most a cache line apart
			n++
		}
		n += r.seq.text + r.seq.one.n + r.seq.inline[0].head + len(r.seq.inline[0].bytes)
	}
	return n
}

// PrefetchLast loads the last member of a set that is not large into the CPU's caches: adding to a
// log reads it and writes after it.
func (s *Set) PrefetchLast() (n int) {
	if s.log != nil {
		n = s.log.PrefetchLast()
	}
	if s.rest == nil {
		return n
	}
	runs := s.rest.seq.one.runs
	if len(runs) == 0 {
		return n
	}
	last := &runs[len(runs)-1]
	if size := len(last.bytes); size > 0 {
		n += int(last.bytes[size-1])
	}
	return n + int(last.starts[len(last.starts)-1])
}
