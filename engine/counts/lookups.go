package counts

import "sync/atomic"

// Lookups counts what calls have found in a shard, the keys that it has deleted by itself, and the
// bans: under the shard's lock, but read without.
type Lookups struct{ Hits, Misses, Expired, Evicted, Bans atomic.Int64 }

// Count counts a lookup.
func (c *Lookups) Count(found bool) {
	if found {
		c.Hits.Add(1)
	} else {
		c.Misses.Add(1)
	}
}

// Reset sets all counters to 0.
func (c *Lookups) Reset() {
	c.Hits.Store(0)
	c.Misses.Store(0)
	c.Expired.Store(0)
	c.Evicted.Store(0)
	c.Bans.Store(0)
}

// Stats are counters since the start, or since Reset.
type Stats struct {
	Hits    int64 // lookups by readers that found a key
	Misses  int64 // and those that did not
	Expired int64 // keys deleted because they had expired
	Evicted int64 // keys deleted to free memory
	Bans    int64 // how often denials have caused one
}

// Add adds the counters to s.
func (c *Lookups) Add(s *Stats) {
	s.Hits += c.Hits.Load()
	s.Misses += c.Misses.Load()
	s.Expired += c.Expired.Load()
	s.Evicted += c.Evicted.Load()
	s.Bans += c.Bans.Load()
}
