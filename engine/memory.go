package engine

import (
	"slices"
	"sync"
	"sync/atomic"

	"rlserver/engine/counts"
	"rlserver/engine/denials"
	"rlserver/engine/effect"
	"rlserver/engine/eviction"
	"rlserver/engine/lock"
	"rlserver/engine/object"
	"rlserver/engine/reserve"
)

// Memory is how much memory the keys of one or several engines take, how much they may take
// together, and the eviction policy. It is safe for concurrent use.
type Memory struct {
	eviction.Room // what the shards have reported; each is behind by less than reportGrain

	policy    atomic.Uint32
	samples   atomic.Int64
	frequency atomic.Bool // access clocks count accesses

	listening Listening

	Reservations reserve.Settings

	evicting sync.Mutex // see EvictAlone

	sharing atomic.Int64 // engines that were made with this memory

	mu      sync.Mutex
	engines []*Engine // replaced, never changed
}

// NewMemory returns a Memory without a bound.
func NewMemory() *Memory {
	m := new(Memory)
	m.Unbound()
	m.samples.Store(DefaultSamples)
	m.Reservations.Init()
	return m
}

// Engines returns the engines that share the memory. It is not to be changed.
func (m *Memory) Engines() []*Engine {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.engines
}

// EvictAlone calls evict, unless another one is being called: of several engines that share a
// memory one evicts at a time.
func (m *Memory) EvictAlone(evict func()) {
	if m.evicting.TryLock() {
		defer m.evicting.Unlock()
		evict()
	}
}

// AwaitCalls is Engine.AwaitCalls for each engine.
func (m *Memory) AwaitCalls() {
	for _, e := range m.Engines() {
		e.AwaitCalls()
	}
}

// Weight is the sum of Engine.Weight.
func (m *Memory) Weight() (bytes int64) {
	for sh := range m.shards {
		bytes += sh.bytes.Weight.Load()
	}
	return bytes
}

// Keys returns how many keys all databases have together.
func (m *Memory) Keys() (sum int) {
	for _, e := range m.Engines() {
		for db := range e.databases {
			keys, _ := e.Size(db)
			sum += keys
		}
	}
	return sum
}

// shards are those of all engines.
func (m *Memory) shards(yield func(*shard) bool) {
	for _, e := range m.Engines() {
		for i := range e.shards {
			if !yield(&e.shards[i]) {
				return
			}
		}
	}
}

// Reserved returns how many reservations all keys have, with those that are over but not forgotten,
// and their memory in bytes. It takes no lock.
func (m *Memory) Reserved() (sum counts.Load) {
	for sh := range m.shards {
		sum = sum.Plus(sh.held.Load())
	}
	return sum
}

// Changes returns how many effects there have been since New. It takes no lock.
func (m *Memory) Changes() (sum int64) {
	for sh := range m.shards {
		sum += sh.changes.Load()
	}
	return sum
}

// Top returns the n keys of a database, or of all (denials.AllDatabases), that were denied most
// since the start or ResetStats, those denied most first. It counts in bounded memory: of N denials
// in a shard, a key with more than N/64 is known, and its count is too low by at most that. It
// locks one shard after the other. The caller owns the result.
func (m *Memory) Top(db, n int) (top []denials.Count) {
	for sh := range m.shards {
		sh.mu.Lock()
		top = sh.denied.Append(top, db)
		sh.mu.Unlock()
	}
	return denials.Top(top, n)
}

// Stats adds up the shards' counters. It takes no lock.
func (m *Memory) Stats() (sum Stats) {
	for sh := range m.shards {
		sh.stats.Add(&sum)
	}
	return sum
}

func (m *Memory) add(e *Engine) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.engines = append(slices.Clone(m.engines), e)
}

// overShare reports whether an engine may evict keys. If several share a memory, only those may
// that have more than an equal share of the budget: some may be replicas, whose keys only another
// process evicts, and no engine is to be emptied because of these.
func (e *Engine) overShare() bool {
	n := e.memory.sharing.Load()
	return n < 2 || e.Weight() > e.Budget()/n
}

// Memory returns the memory that the engine shares.
func (e *Engine) Memory() *Memory { return e.memory }

// Discard removes the engine from the memory that it shares, when it is no longer used, and drops
// its keys: idle connections may refer to it for as long as they are open. It takes the locks of
// its shards, one after the other, and may be called again. If a script holds keys of one, see
// Hold, this one is dropped when it ends: Discard does not wait for that.
func (e *Engine) Discard() {
	m := e.memory
	m.mu.Lock()
	if i := slices.Index(m.engines, e); i >= 0 {
		m.engines = slices.Delete(slices.Clone(m.engines), i, i+1)
		m.sharing.Add(-1)
	}
	m.mu.Unlock()
	for i := range e.shards {
		tx := e.NewTx()
		tx.locked, tx.whole = append(tx.locked, &e.shards[i]), true
		if lock.All(tx.locked); tx.blockedBy() == nil {
			tx.locked[0].discard()
			continue
		}
		lock.Release(tx.locked)
		go func() { // for as long as it likes
			tx.lock(true)
			tx.locked[0].discard()
		}()
	}
}

// discard drops the keys of a shard, and unlocks it.
func (sh *shard) discard() {
	defer sh.mu.Unlock()
	sh.e.Use(-sh.reported)
	sh.reported, sh.discarded = 0, true
	for db := range sh.dbs {
		sh.flush(db)
	}
	sh.recount()
}

// reportGrain is by how many bytes the weight of a shard changes before it is added to the memory,
// and shown within a call, so that not all shards write to one cache line with every call.
const reportGrain = 1 << 10

// Weight returns how many bytes all keys take, by the estimate of MemoryUsage. It takes no lock.
func (e *Engine) Weight() (bytes int64) {
	for i := range e.shards {
		bytes += e.shards[i].bytes.Weight.Load()
	}
	return bytes
}

// Idle returns how many bytes of the tables no key takes: they wait for new keys. It takes no lock.
func (m *Memory) Idle() (bytes int64) {
	for sh := range m.shards {
		bytes += sh.bytes.Idle.Load()
	}
	return bytes
}

// grow records that the keys of a database take n more bytes.
func (sh *shard) grow(db int, n int64) {
	sh.dbs[db].weight += n
	weight := sh.bytes.Weight.Add(n)
	unreported := weight - sh.reported
	if (unreported >= reportGrain || unreported <= -reportGrain) && !sh.discarded {
		sh.reported = weight
		sh.bytes.Weight.Show()
		sh.e.Use(unreported)
	}
}

// grown records by how many bytes an effect has changed the object under its key.
func (e *Engine) grown(f *effect.Effect, n int64) { e.shardOf(f.Key).grow(f.DB, n) }

// MemoryUsage estimates how many bytes a key takes, its name and its share of the keyspace's table
// included. ok is false for a missing key. The time does not depend on the size of the value.
func (tx *Tx) MemoryUsage(k Key) (bytes int64, ok bool) {
	o := tx.peek(k)
	if o == nil {
		return 0, false
	}
	return object.Weigh(o), true
}

// Usage is MemoryUsage outside of a call; 0 for a missing key, or one that a script holds for long.
// It takes the key's lock itself.
func (e *Engine) Usage(db int, k Key) (bytes int64) {
	sh, ok := e.lockFree(k.Hash)
	if !ok {
		return 0
	}
	defer sh.mu.Unlock()
	if o := sh.find(db, k); o != nil {
		return object.Weigh(o)
	}
	return 0
}

// roomToStore reports whether a value of this size fits into the budget in place of the current
// value of a key.
func (tx *Tx) roomToStore(db int, k Key, bytes int64) bool {
	if bytes < LargeGrowth {
		return true
	}
	if o := tx.find(db, k); o != nil {
		bytes -= object.Weigh(o)
	}
	return tx.e.RoomFor(bytes)
}
