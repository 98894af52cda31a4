package eviction

import "math"

// Policy says which keys are evicted when memory runs short. The zero value is Ratelimit.
type Policy uint8

// The policies: Redis', and Ratelimit, which knows limiters. Each looks at a few keys at a time and
// evicts the best of those, as Redis does.
const (
	// Ratelimit takes keys with a deadline: the first of these groups that is not empty, and among
	// equals the one that nobody has used for longest: limiters whose time is nearly over, so that
	// they are nearly as good as new; those that are used by less than half, as nearly all of a
	// flood are, and keys that are no limiters; those that their first call used up; those used by
	// half or more; those with nothing left. One that is denying stays.
	Ratelimit      Policy = iota
	NoEviction            // nothing goes
	AllKeysLRU            // of all keys, the one that nobody has used for longest
	AllKeysLFU            // the one used least often
	AllKeysRandom         // any
	VolatileLRU           // of those with a deadline, likewise
	VolatileLFU           //
	VolatileRandom        //
	VolatileTTL           // the one with the nearest deadline
)

// Policies are the names of the policies, in their order.
var Policies = []string{
	"ratelimit",
	"noeviction",
	"allkeys-lru",
	"allkeys-lfu",
	"allkeys-random",
	"volatile-lru",
	"volatile-lfu",
	"volatile-random",
	"volatile-ttl",
}

func (p Policy) String() string { return Policies[p] }

// CountsAccesses reports whether the policy goes by how often keys are used, rather than by when.
func (p Policy) CountsAccesses() bool { return p == AllKeysLFU || p == VolatileLFU }

// Volatile reports whether the policy takes keys with a deadline alone.
func (p Policy) Volatile() bool { return p == Ratelimit || p >= VolatileLRU }

// Worth is how much is lost with a key at now (Unix ms), in units of the policy's; may is false for
// one that must stay. The key has a deadline (Unix ms; 0: none), an access clock and a pressure.
func (p Policy) Worth(expireAt int64, accessed uint32, s Pressure, now int64) (worth int64, may bool) {
	if p.Volatile() && expireAt == 0 {
		return 0, false
	}
	// the greater, the shorter ago it was used
	fresh := int64(ClockMask - (uint32(now/1000)-accessed)&ClockMask)
	switch p {
	case Ratelimit:
		left := expireAt - now
		if nearlyOver := left < (ClockMask-fresh)*1000/7; nearlyOver && s != Denying {
			return fresh, true
		}
		return WorthOf(s) + fresh<<32 + min(left/1000, math.MaxUint32), s != Denying
	case AllKeysLRU, VolatileLRU:
		return fresh, true
	case AllKeysLFU, VolatileLFU:
		return int64(Frequency(accessed).Count(now)), true
	case VolatileTTL:
		return expireAt, true
	}
	return 0, true
}

// WorthOf is the least worth of a limiter under this pressure, with Ratelimit. A key that is no
// limiter is worth as much as one that is little used.
func WorthOf(s Pressure) int64 { return int64(max(s, pressureLow)) << 56 }
