package zset

// Prefetch loads the set itself into the cache, for PrefetchLast soon after. What the two return
// means nothing; it is to be used in some way, so that the compiler keeps the fetching.
func (s *Set) Prefetch() (n int) {
	if s.bare { // what is read is apart by a cache line or less
		n++
	}
	return n + s.seq.text + s.seq.one.n + s.seq.room[0].head + len(s.seq.room[0].bytes)
}

// PrefetchLast loads the last member of a set that is not large into the cache: to add to a log
// is to look at it and write behind it.
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
