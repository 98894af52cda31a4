package eviction

import "math"

// Policy is an eviction policy: which keys are evicted when memory is short. The zero value is
// Ratelimit.
type Policy uint8

// The policies: those of Redis, and Ratelimit, which knows limiters. Each evicts the best of a few
// sampled keys, as Redis does.
const (
	// Ratelimit evicts keys with a deadline, from the first of these groups that is not empty, and
	// within it the least recently used key: limiters close to their deadline, which are nearly
	// unused; limiters of which less than half is used, as in a flood of new keys, and keys that
	// are not limiters; limiters used up by their first call; limiters of which half or more is
	// used; limiters with nothing remaining. A limiter that is denying is not evicted.
	Ratelimit      Policy = iota
	NoEviction            // nothing is evicted
	AllKeysLRU            // of all keys, the least recently used
	AllKeysLFU            // the least frequently used
	AllKeysRandom         // any
	VolatileLRU           // the same three, of the keys with a deadline
	VolatileLFU           //
	VolatileRandom        //
	VolatileTTL           // the one with the nearest deadline
)

// Policies are the names of the policies, by Policy.
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

// CountsAccesses reports whether the policy uses the number of accesses rather than the time of the
// last one.
func (p Policy) CountsAccesses() bool { return p == AllKeysLFU || p == VolatileLFU }

// Volatile reports whether the policy evicts only keys with a deadline.
func (p Policy) Volatile() bool { return p == Ratelimit || p >= VolatileLRU }

// Worth returns the worth of a key at now (Unix ms), in units of the policy; the key with the
// lowest worth is evicted. may is false for a key that must not be evicted. expireAt is its
// deadline (Unix ms; 0: none), accessed its access clock, s its pressure.
func (p Policy) Worth(expireAt int64, accessed uint32, s Pressure, now int64) (worth int64, may bool) {
	if p.Volatile() && expireAt == 0 {
		return 0, false
	}
	// the more recently used, the greater
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

// WorthOf returns the lowest worth of a limiter with this pressure, under Ratelimit. A key that is
// not a limiter has the worth of a limiter that is little used.
func WorthOf(s Pressure) int64 { return int64(max(s, pressureLow)) << 56 }
