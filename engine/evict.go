package engine

import (
	"math"

	"rlserver/dict"
	"rlserver/engine/limit"
	"rlserver/engine/rule"
)

// EvictionPolicy says which keys are evicted when memory runs short. The zero value is Ratelimit.
type EvictionPolicy uint8

// The policies: Redis', and Ratelimit, which knows limiters. Each looks at a few keys at a time and
// evicts the best of those, as Redis does.
const (
	// Ratelimit takes keys with a deadline, of which the first of these that there are, and among
	// equals the one that nobody has used for longest: limiters whose time is nearly over, so that
	// they are nearly as good as new; those that are used by less than half, as nearly all of a
	// flood are, and keys that are no limiters; those that their first call used up; those used by
	// half or more; those with nothing left. One that is denying stays.
	Ratelimit      EvictionPolicy = iota
	NoEviction                    // nothing goes
	AllKeysLRU                    // of all keys, the one that nobody has used for longest
	AllKeysLFU                    // the one used least often
	AllKeysRandom                 // any
	VolatileLRU                   // of those with a deadline, likewise
	VolatileLFU                   //
	VolatileRandom                //
	VolatileTTL                   // the one with the nearest deadline
)

// EvictionPolicies are the names of the policies, in their order.
var EvictionPolicies = []string{
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

func (p EvictionPolicy) String() string { return EvictionPolicies[p] }

// CountsAccesses reports whether the policy goes by how often keys are used, rather than by when.
func (p EvictionPolicy) CountsAccesses() bool { return p == AllKeysLFU || p == VolatileLFU }

// volatile reports whether the policy takes keys with a deadline alone.
func (p EvictionPolicy) volatile() bool { return p == Ratelimit || p >= VolatileLRU }

// DefaultSamples is how many keys are looked at to evict one, unless SetEviction says otherwise.
const DefaultSamples = 5

// SetBudget says how many bytes all keys may take; math.MaxInt64 is any number. More than that they
// take only until the next MakeRoom.
func (e *Engine) SetBudget(bytes int64) { e.memory.budget.Store(bytes) }

// Budget is how many bytes all keys may take.
func (e *Engine) Budget() int64 { return e.memory.budget.Load() }

// SetEviction says how MakeRoom makes room, and how many keys it looks at, at least, to evict one.
func (e *Engine) SetEviction(p EvictionPolicy, samples int) {
	e.memory.policy.Store(uint32(p))
	e.memory.samples.Store(int64(max(samples, 1)))
	e.memory.frequency.Store(p.CountsAccesses())
}

// Crowded reports whether the keys take more than the budget, to within a KB per shard. It is
// cheap: it is called before each call.
func (e *Engine) Crowded() bool { return e.crowdedBy(0) }

// crowdedBy is Crowded once the keys take so many bytes more.
func (e *Engine) crowdedBy(bytes int64) bool {
	return e.memory.used.Load()+bytes > e.memory.budget.Load()
}

// LargeGrowth is from how many bytes on a change is looked at before it makes the keys take so many
// more. What is less may make them take more than they may until the next MakeRoom, as what a
// client sends may.
const LargeGrowth = 64 << 10

func (e *Engine) roomFor(bytes int64) bool { return bytes < LargeGrowth || !e.crowdedBy(bytes) }

// MakeRoom evicts keys, at now (Unix ms), until they take no more than they may, or it has tried
// for long enough: some dozens of microseconds. It reports whether the next call may take more
// room: not if it was crowded and nothing was found to evict. Evictions are effects like any other:
// the next End returns their position.
//
// It is called on an idle Tx, not one that was given to Begin, and locks one shard after the other.
func (tx *Tx) MakeRoom(now int64) (room bool) { return tx.makeRoom(now, 0) }

// MakeRoomFor does what MakeRoom does, for a call that is to take so many bytes more, and as often
// as it takes. It does nothing if these are few, or more than all keys may take.
func (tx *Tx) MakeRoomFor(now, bytes int64) {
	for more := bytes <= tx.e.memory.budget.Load(); more && !tx.e.roomFor(bytes); {
		more = tx.makeRoom(now, bytes)
	}
}

func (tx *Tx) makeRoom(now, bytes int64) (room bool) {
	e := tx.e
	policy := EvictionPolicy(e.memory.policy.Load())
	if policy == NoEviction {
		return !e.crowdedBy(bytes)
	}
	v := eviction{tx: tx, policy: policy, samples: int(e.memory.samples.Load())}
	for looks := 0; e.crowdedBy(bytes); looks++ {
		if v.seen > patience || looks >= 2*len(e.shards) && v.gone == 0 || looks >= 8*len(e.shards) {
			return v.gone > 0
		}
		sh := &e.shards[e.memory.turn.Add(1)%uint64(len(e.shards))]
		v.evictFrom(sh, now)
	}
	return true
}

// patience is how many keys one call to MakeRoom looks at. Where nearly all are denying, more would
// delay calls without finding anything.
const patience = 512

// eviction looks for keys to evict.
type eviction struct {
	tx      *Tx
	policy  EvictionPolicy
	samples int
	seen    int // how many keys it has looked at
	gone    int // and how many of these have gone

	best    object // of those in the shard that it is looking at
	worth   int64
	bestDB  int
	expired object // one that has expired
	enough  bool
	visited int // in this shard
}

// hand is where in a shard to look next. It goes around, in the order of hashes, which no client
// can predict.
type hand struct {
	db     int
	cursor uint64
}

const (
	// that are looked at under one lock, most of which are passed by for they have no deadline
	mostBuckets = 64
	pickier     = 8 // how many times as many keys are looked at when none of them is worth little
)

// evictFrom evicts one key of a shard, if there is one that may go.
func (v *eviction) evictFrom(sh *shard, now int64) {
	tx := v.tx
	defer tx.endStep()
	tx.locked = append(tx.locked, sh)
	tx.begin(now, 0, true)
	v.best, v.expired, v.enough, v.visited = nil, nil, false, 0
	for buckets := 0; buckets < mostBuckets && !v.enough; buckets++ {
		if !v.look(sh) {
			break
		}
	}
	v.seen += v.visited
	switch {
	case v.expired != nil:
		sh.stats.expired.Add(1)
		v.drop(v.expired)
	case v.best != nil:
		sh.stats.evicted.Add(1)
		v.drop(v.best)
	}
}

func (v *eviction) drop(o object) {
	v.gone++
	sh := v.tx.locked[0]
	sh.evicting = true
	v.tx.db = v.bestDB
	v.tx.delete(v.tx.e.Key(bytesOf(o.head().name)), o)
	sh.evicting = false
}

// look looks at the next bucket of a shard, and reports whether there is any.
func (v *eviction) look(sh *shard) bool {
	s := sh.turnTo(v.policy.volatile())
	if s == nil {
		return false
	}
	if v.policy.volatile() {
		sh.hand.cursor, _ = s.keys.Sweep(sh.hand.cursor, dict.AnyTime, 1, func(o object) (int64, bool) {
			v.visit(sh, o)
			if at := o.head().expireAt; at != 0 {
				return at, false
			}
			return math.MaxInt64, false
		})
	} else {
		sh.hand.cursor = s.keys.Scan(sh.hand.cursor, 1, func(o object) { v.visit(sh, o) })
	}
	if sh.hand.cursor == 0 {
		sh.hand.db++
	}
	return true
}

// turnTo moves a shard's hand on to the next database that holds keys, with a deadline if that is
// wanted, unless it is within one.
func (sh *shard) turnTo(volatile bool) *space {
	for range len(sh.dbs) + 1 {
		sh.hand.db %= len(sh.dbs)
		if s := &sh.dbs[sh.hand.db]; s.size() > 0 && (!volatile || s.expires > 0) {
			return s
		}
		sh.hand = hand{db: sh.hand.db + 1}
	}
	return nil
}

// visit holds one more key against the best so far.
func (v *eviction) visit(sh *shard, o object) {
	v.visited++
	if v.expired != nil {
		return
	}
	if o.head().expired(sh.now) {
		v.expired, v.bestDB, v.enough = o, sh.hand.db, true
		return
	}
	if worth, may := v.policy.worth(o, sh.now); may && (v.best == nil || worth < v.worth) {
		v.best, v.worth, v.bestDB = o, worth, sh.hand.db
	}
	cheap := v.best != nil && (v.policy != Ratelimit || v.worth < worthOf(pressureHigh))
	v.enough = v.enough || v.visited >= v.samples && cheap || v.visited >= v.samples*pickier
}

// worth is how much is lost with an object at now (Unix ms), in units of the policy's; may is false
// of one that has to stay.
func (p EvictionPolicy) worth(o object, now int64) (worth int64, may bool) {
	h := o.head()
	if p.volatile() && h.expireAt == 0 {
		return 0, false
	}
	// the greater, the shorter ago it was used
	fresh := int64(clockMask - (uint32(now/1000)-o.accessed())&clockMask)
	switch p {
	case Ratelimit:
		s := o.pressure()
		left := h.expireAt - now
		if nearlyOver := left < (clockMask-fresh)*1000/7; nearlyOver && s != denying {
			return fresh, true
		}
		return worthOf(s) + fresh<<32 + min(left/1000, math.MaxUint32), s != denying
	case AllKeysLRU, VolatileLRU:
		return fresh, true
	case AllKeysLFU, VolatileLFU:
		return int64(frequency(o.accessed()).count(now)), true
	case VolatileTTL:
		return h.expireAt, true
	}
	return 0, true
}

// worthOf is the least worth of a limiter under this pressure, with Ratelimit. A key that is no
// limiter is worth as much as one that is little used.
func worthOf(s pressure) int64 { return int64(max(s, pressureLow)) << 56 }

// pressure is how near a limiter was to denying at its last call. It is neither in the log nor in a
// snapshot, as no decision depends on it: eviction goes by it, as evicting a limiter admits calls
// that it would deny. A key that is no limiter is unused.
type pressure uint8

const (
	unused       pressure = iota
	pressureLow           // less than half of it is used
	spent                 // its first call has used all of it
	pressureHigh          // half of it is used, or more
	pressureFull          // there is nothing left
	denying               // a call was denied, and since then none has found room to spare
)

const (
	pressureBits = 3
	pressureMask = 1<<pressureBits - 1
)

// after is the pressure after one more decision. fresh: it is the first.
func (s pressure) after(d limit.Decision, fresh bool) pressure {
	switch {
	case !d.Allowed && d.RetryAfter != limit.Never:
		return denying
	case !d.Allowed: // it says nothing about what is left
		return s
	case d.Remaining == 0 && fresh:
		return spent
	case d.Remaining == 0:
		return max(s, pressureFull)
	case d.Remaining <= d.Limit/2:
		return pressureHigh
	}
	return pressureLow
}

// note records what a rule has decided for a key: its pressure, and whether it was denied. o is
// what the key holds after the call, nil for nothing; fresh: it is new. It returns the decision. In
// a dry run a denial is not counted, but the waiter needs the key to stay. A policy in SHADOW
// denies nothing.
func (tx *Tx) note(
	k Key, by *rule.Rule, o object, fresh bool, cost int64, d limit.Decision, shadow bool,
) limit.Decision {
	if tx.dryRun && d.Allowed {
		return d
	}
	if o != nil {
		s := o.pressure().after(d, fresh)
		if shadow {
			s = min(s, pressureFull)
		}
		o.setPressure(s)
	}
	if !d.Allowed && cost > 0 && !shadow && !tx.dryRun {
		tx.e.shardOf(k).denied.add(tx.db, k, by)
	}
	return d
}

// Denied notes that a call on a key was denied that no limiter here has decided: RL.TOP counts it,
// and the policy ratelimit keeps the key.
func (tx *Tx) Denied(k Key) {
	if o := tx.find(tx.db, k); o != nil {
		o.setPressure(denying)
	}
	tx.e.shardOf(k).denied.add(tx.db, k, nil)
}

// frequency is what an access clock holds while a policy counts accesses, in Redis' form: 16 bits
// of the minute of the last access, 8 bits of a counter that grows with the logarithm of the
// accesses and loses one each minute.
//
//	23            8 7      0
//	[ minute       | count  ]
//
// When the policy changes from one kind to the other, keys are taken for what their bits happen to
// mean until they are used again.
type frequency uint32

const (
	freshCount = 5  // of a new key, so that it is not evicted before its second use
	logFactor  = 10 // how much harder each count is to come by
)

func minuteOf(now int64) uint32 { return uint32(now/60_000) & 0xffff }

// count is the counter as it stands at now (Unix ms).
func (f frequency) count(now int64) uint8 {
	idle := (minuteOf(now) - uint32(f>>8)) & 0xffff
	return uint8(max(0, int(uint8(f))-int(idle)))
}

// use is one more access at now. roll is a uniform random number.
func (f frequency) use(now int64, roll uint64) frequency {
	count := f.count(now)
	harder := uint64(max(0, int(count)-freshCount))*logFactor + 1
	if count < 255 && roll%harder == 0 {
		count++
	}
	return frequency(minuteOf(now)<<8 | uint32(count))
}

// stamp is what an access clock is to hold when an object is used now. fresh is true for a new
// object.
func (m *memory) stamp(sh *shard, o object, fresh bool) uint32 {
	switch {
	case !m.frequency.Load():
		return uint32(sh.now / 1000)
	case fresh:
		return minuteOf(sh.now)<<8 | freshCount
	}
	return uint32(frequency(o.accessed()).use(sh.now, sh.roll()))
}

// roll gives the shard's next random number: xorshift64*, of Vigna, An experimental exploration of
// Marsaglia's xorshift generators, 2016. It follows from the engine's seed.
func (sh *shard) roll() uint64 {
	sh.dice ^= sh.dice >> 12
	sh.dice ^= sh.dice << 25
	sh.dice ^= sh.dice >> 27
	return sh.dice * 0x2545f4914f6cdd1d >> 32
}

// Frequency is how often a key is used, by the logarithmic counter of the policies that go by that;
// ok is false for a missing key. The lookup is not a use.
func (tx *Tx) Frequency(k Key) (count int64, ok bool) {
	o := tx.peek(k)
	if o == nil {
		return 0, false
	}
	return int64(frequency(o.accessed()).count(tx.now)), true
}
