package engine

import (
	"math"

	"rlserver/dict"
	"rlserver/engine/eviction"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/rule"
)

// DefaultSamples is how many keys are looked at to evict one, unless SetEviction says otherwise.
const DefaultSamples = 5

// SetBudget says how many bytes all keys may take; math.MaxInt64 is any number. More than that they
// take only until the next MakeRoom.
func (e *Engine) SetBudget(bytes int64) { e.memory.budget.Store(bytes) }

// Budget is how many bytes all keys may take.
func (e *Engine) Budget() int64 { return e.memory.budget.Load() }

// SetEviction says how MakeRoom makes room, and how many keys it looks at, at least, to evict one.
func (e *Engine) SetEviction(p eviction.Policy, samples int) {
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
	policy := eviction.Policy(e.memory.policy.Load())
	if policy == eviction.NoEviction {
		return !e.crowdedBy(bytes)
	}
	v := evictor{tx: tx, policy: policy, samples: int(e.memory.samples.Load())}
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

// evictor looks for keys to evict.
type evictor struct {
	tx      *Tx
	policy  eviction.Policy
	samples int
	seen    int // how many keys it has looked at
	gone    int // and how many of these have gone

	best    object.Object // of those in the shard that it is looking at
	worth   int64
	bestDB  int
	expired object.Object // one that has expired
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
	// examined under one lock; most of them are skipped, as they have no deadline
	mostBuckets = 64
	pickier     = 8 // how many times as many keys are looked at when none of them is worth little
)

// evictFrom evicts one key of a shard, if there is one that may go.
func (v *evictor) evictFrom(sh *shard, now int64) {
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

func (v *evictor) drop(o object.Object) {
	v.gone++
	sh := v.tx.locked[0]
	sh.evicting = true
	v.tx.db = v.bestDB
	v.tx.delete(v.tx.e.Key(object.BytesOf(o.Head().Name)), o)
	sh.evicting = false
}

// look looks at the next bucket of a shard, and reports whether there is any.
func (v *evictor) look(sh *shard) bool {
	s := sh.turnTo(v.policy.Volatile())
	if s == nil {
		return false
	}
	if v.policy.Volatile() {
		sh.hand.cursor, _ = s.keys.Sweep(sh.hand.cursor, dict.AnyTime, 1, func(o object.Object) (int64, bool) {
			v.visit(sh, o)
			if at := o.Head().ExpireAt; at != 0 {
				return at, false
			}
			return math.MaxInt64, false
		})
	} else {
		sh.hand.cursor = s.keys.Scan(sh.hand.cursor, 1, func(o object.Object) { v.visit(sh, o) })
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
func (v *evictor) visit(sh *shard, o object.Object) {
	v.visited++
	if v.expired != nil {
		return
	}
	if o.Head().Expired(sh.now) {
		v.expired, v.bestDB, v.enough = o, sh.hand.db, true
		return
	}
	if worth, may := v.policy.Worth(o.Head().ExpireAt, o.Accessed(), o.Pressure(), sh.now); may &&
		(v.best == nil || worth < v.worth) {
		v.best, v.worth, v.bestDB = o, worth, sh.hand.db
	}
	cheap := v.best != nil && (v.policy != eviction.Ratelimit || v.worth < eviction.WorthOf(eviction.PressureHigh))
	v.enough = v.enough || v.visited >= v.samples && cheap || v.visited >= v.samples*pickier
}

// note records what a rule has decided for a key: its pressure, and whether it was denied. o is
// what the key holds after the call, nil for nothing; fresh: it is new. In a dry run a denial is
// not counted, but the waiter needs the key to stay. A policy in SHADOW denies nothing.
func (tx *Tx) note(
	k Key, by *rule.Rule, o object.Object, fresh bool, cost int64, d *limit.Decision, shadow bool,
) {
	if tx.dryRun && d.Allowed {
		return
	}
	if o != nil {
		s := o.Pressure().After(d, fresh)
		if shadow {
			s = min(s, eviction.PressureFull)
		}
		o.SetPressure(s)
	}
	if !d.Allowed && cost > 0 && !shadow && !tx.dryRun {
		tx.e.shardOf(k).denied.Add(tx.db, k.Hash, k.Name, by)
	}
}

// Denied notes that a call on a key was denied that no limiter here has decided: RL.TOP counts it,
// and the policy ratelimit keeps the key.
func (tx *Tx) Denied(k Key) {
	if o := tx.find(tx.db, k); o != nil {
		o.SetPressure(eviction.Denying)
	}
	tx.e.shardOf(k).denied.Add(tx.db, k.Hash, k.Name, nil)
}

// stamp is what an access clock is to hold when an object is used now. fresh is true for a new
// object.
func (m *memory) stamp(sh *shard, o object.Object, fresh bool) uint32 {
	switch {
	case !m.frequency.Load():
		return uint32(sh.now / 1000)
	case fresh:
		return eviction.MinuteOf(sh.now)<<8 | eviction.FreshCount
	}
	return uint32(eviction.Frequency(o.Accessed()).Use(sh.now, sh.roll()))
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
	return int64(eviction.Frequency(o.Accessed()).Count(tx.now)), true
}
