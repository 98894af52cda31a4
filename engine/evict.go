package engine

import (
	"rlserver/engine/eviction"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/rule"
	"rlserver/engine/sampling"
	"rlserver/engine/table"
)

// DefaultSamples is how many keys are sampled to evict one, unless SetEviction sets another number.
const DefaultSamples = 5

// SetEviction sets the eviction policy of MakeRoom, and how many keys it samples, at least, to
// evict one.
func (e *Engine) SetEviction(p eviction.Policy, samples int) {
	e.memory.policy.Store(uint32(p))
	e.memory.samples.Store(int64(max(samples, 1)))
	e.memory.frequency.Store(p.CountsAccesses())
}

// LargeGrowth is from how many bytes on MakeRoomFor evicts.
const LargeGrowth = eviction.LargeGrowth

// MakeRoom evicts keys, at now (Unix ms), until they fit the budget, or for at most some dozens of
// microseconds. It reports whether the next call may take more memory: false if the keys exceed the
// budget and none could be evicted. Evictions are effects like any other: the next End returns
// their position.
//
// It is called on an idle Tx, not between Begin and End, and locks one shard after the other.
func (tx *Tx) MakeRoom(now int64) (room bool) { return tx.makeRoom(now, 0) }

// MakeRoomFor is MakeRoom for a call that will take a number of bytes; it repeats until they fit,
// and reports whether they do. It evicts nothing if they are below LargeGrowth, or above the whole
// budget.
func (tx *Tx) MakeRoomFor(now, bytes int64) (room bool) {
	// as long as there is something to evict, whatever others set meanwhile
	for bytes <= tx.e.Budget() && !tx.e.RoomFor(bytes) && tx.e.CrowdedBy(bytes) {
		if !tx.makeRoom(now, bytes) {
			break
		}
	}
	return tx.e.RoomFor(bytes)
}

func (tx *Tx) makeRoom(now, bytes int64) (room bool) {
	e := tx.e
	policy := eviction.Policy(e.memory.policy.Load())
	if policy == eviction.NoEviction || !e.overShare() {
		return !e.CrowdedBy(bytes)
	}
	v := evictor{tx: tx, bytes: bytes, bans: true, Sample: sampling.Sample{
		Policy: policy, Size: int(e.memory.samples.Load()), Keep: e.holdsObject,
	}}
	for looks := 0; e.CrowdedBy(bytes); looks++ {
		if v.seen > patience || looks >= 2*len(e.shards) && v.gone == 0 || looks >= 8*len(e.shards) {
			return v.gone > 0
		}
		sh := &e.shards[e.turn.Add(1)%uint64(len(e.shards))]
		v.bans = v.bans && v.vain <= patience/2 && v.looks < len(e.shards)
		v.evictFrom(sh, now)
	}
	return true
}

// patience is how many keys one call of MakeRoom samples at most. If nearly all of them are
// denying, more would delay calls without finding a key to evict.
const patience = 512

// evictor evicts keys.
type evictor struct {
	sampling.Sample
	tx          *Tx
	bytes       int64 // for which it makes room
	seen        int   // how many keys it has sampled
	gone        int   // how many of these were evicted
	bans        bool  // as long as there may be others, keys with bans stay
	looks, vain int   // how many looks, and keys sampled, since it has evicted one
}

// evictFrom evicts a few keys of a shard, if there are any that may be evicted.
func (v *evictor) evictFrom(sh *shard, now int64) {
	tx := v.tx
	tx.locked = append(tx.locked, sh)
	tx.begin(now, 0, true, true)
	defer tx.endStep()
	v.Look(&sh.hand, sh.now, len(sh.dbs), func(db int) (keys *table.Table, expires int) {
		return sh.dbs[db].keys, sh.dbs[db].expires
	})
	v.seen, v.vain, v.looks = v.seen+v.Visited, v.vain+v.Visited, v.looks+1
	sh.evicting = true
	for i, f := range v.Found() {
		if i > 0 && !tx.e.CrowdedBy(v.bytes) {
			break
		}
		count := &sh.stats.Evicted
		if f.Expired {
			count = &sh.stats.Expired
		} else if v.bans && object.BannedAt(f.Object, sh.now) {
			continue
		}
		count.Add(1)
		v.gone, v.vain, v.looks = v.gone+1, 0, 0
		tx.db = f.DB
		tx.delete(tx.e.Key(object.BytesOf(f.Object.Name())), f.Object)
	}
	sh.evicting = false
}

// note records a rule's decision for a key: the pressure, and a denial. o is the key's object after
// the call, nil if it is missing; fresh: the object is new. In a dry run a denial is not counted,
// but sets the pressure, because the waiter needs the key to stay. A policy in SHADOW denies
// nothing.
func (tx *Tx) note(k Key, by *rule.Rule, o object.Object, fresh bool, cost int64, d *limit.Decision, shadow bool) {
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

// Denied records a denial that no limiter of the engine has decided: RL.TOP counts it, and the
// policy ratelimit keeps the key.
func (tx *Tx) Denied(k Key) {
	if o := tx.find(tx.db, k); o != nil {
		o.SetPressure(eviction.Denying)
	}
	tx.e.shardOf(k).denied.Add(tx.db, k.Hash, k.Name, nil)
}

// stamp returns the new value of an object's access clock when the object is used now. fresh: the
// object is new.
func (m *Memory) stamp(sh *shard, o object.Object, fresh bool) uint32 {
	switch {
	case !m.frequency.Load():
		return uint32(sh.now / 1000)
	case fresh:
		return eviction.MinuteOf(sh.now)<<8 | eviction.FreshCount
	}
	return uint32(eviction.Frequency(o.Accessed()).Use(sh.now, sh.dice.Roll()))
}

// Frequency returns a key's logarithmic access counter, which the LFU policies use; ok is false for
// a missing key. The lookup does not count as an access.
func (tx *Tx) Frequency(k Key) (count int64, ok bool) {
	o := tx.peek(k)
	if o == nil {
		return 0, false
	}
	return int64(eviction.Frequency(o.Accessed()).Count(tx.now)), true
}
