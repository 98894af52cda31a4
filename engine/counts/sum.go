package counts

import "sync/atomic"

// Sum is a number that is changed under a lock, but read without. Readers see what it was at the
// last Show: a write that they could see at once would wait for all writes before it to reach the
// caches, and with many new keys these take long.
type Sum struct {
	now   int64
	shown atomic.Int64
}

// Add adds n, which may be negative, and returns the sum. The caller has the lock.
func (s *Sum) Add(n int64) int64 {
	s.now += n
	return s.now
}

// Now returns the sum to a caller that has the lock.
func (s *Sum) Now() int64 { return s.now }

// Load returns what the sum was at the last Show.
func (s *Sum) Load() int64 { return s.shown.Load() }

// Show lets readers see the sum, before the lock is released.
func (s *Sum) Show() {
	if s.now != s.shown.Load() {
		s.shown.Store(s.now)
	}
}

// Bytes is the memory of a shard.
type Bytes struct {
	Weight Sum // what all keys take
	Idle   Sum // of the tables, what no key takes
}

// Show shows both sums.
func (b *Bytes) Show() {
	b.Weight.Show()
	b.Idle.Show()
}

// Show shows all of the sums.
func Show(sums []Sum) {
	for i := range sums {
		sums[i].Show()
	}
}
