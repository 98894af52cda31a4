package counts

import "sync/atomic"

// Load is how many of something there are, and their memory in bytes.
type Load struct{ N, Bytes int64 }

// Minus returns the difference.
func (l Load) Minus(other Load) Load { return Load{l.N - other.N, l.Bytes - other.Bytes} }

// Plus returns the sum.
func (l Load) Plus(other Load) Load { return Load{l.N + other.N, l.Bytes + other.Bytes} }

// SharedLoad is a Load that is changed under a lock, but read without.
type SharedLoad struct{ n, bytes atomic.Int64 }

// Add adds a load, which may be negative.
func (s *SharedLoad) Add(l Load) {
	s.n.Add(l.N)
	s.bytes.Add(l.Bytes)
}

// Load returns the load.
func (s *SharedLoad) Load() Load { return Load{s.n.Load(), s.bytes.Load()} }
