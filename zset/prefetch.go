package zset

// Prefetch loads the set itself into the CPU's caches, for a PrefetchLast soon after. The results
// of both have no meaning, but the caller must use them so that the compiler does not remove the
// loads.
func (s *Set) Prefetch() (n int) {
	if s.unindexed { // the fields that are read are at most a cache line apart
		n++
	}
	return n + s.seq.text + s.seq.one.n + s.seq.inline[0].head + len(s.seq.inline[0].bytes)
}

// PrefetchLast loads the last member of a set that is not large into the CPU's caches: adding to a
// log reads it and writes after it.
func (s *Set) PrefetchLast() (n int) {
	runs := s.seq.one.runs
	if len(runs) == 0 {
		return 0
	}
	last := &runs[len(runs)-1]
	if size := len(last.bytes); size > 0 {
		n = int(last.bytes[size-1])
	}
	return n + int(last.starts[len(last.starts)-1])
}
