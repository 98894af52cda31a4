package engine

import (
	"sync/atomic"

	"rlserver/engine/effect"
	"rlserver/engine/object"
)

// memory is how much memory the keys take, how much they may take, and the eviction policy.
type memory struct {
	// the sum of what the shards have reported; each is behind by less than reportGrain
	used atomic.Int64
	_    [56]byte // the fields below are read by every call, and rarely written

	budget    atomic.Int64 // math.MaxInt64: any
	policy    atomic.Uint32
	samples   atomic.Int64
	frequency atomic.Bool   // access clocks count accesses
	turn      atomic.Uint64 // the shard that evicts next, modulo their number
}

// reportGrain is by how many bytes the weight of a shard changes before it is added to memory.used,
// so that not all shards write to one cache line with every call.
const reportGrain = 1 << 10

// Weight returns how many bytes all keys take, by the estimate of MemoryUsage. It takes no lock.
func (e *Engine) Weight() (bytes int64) {
	for i := range e.shards {
		bytes += e.shards[i].weight.Load()
	}
	return bytes
}

// grow records that the keys of a database take n more bytes.
func (sh *shard) grow(db int, n int64) {
	if n == 0 {
		return
	}
	sh.dbs[db].weight += n
	weight := sh.weight.Add(n)
	if unreported := weight - sh.reported; unreported >= reportGrain || unreported <= -reportGrain {
		sh.reported = weight
		sh.e.memory.used.Add(unreported)
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

// Usage is MemoryUsage outside of a call; 0 for a missing key. It takes the key's lock itself.
func (e *Engine) Usage(db int, k Key) (bytes int64) {
	sh := e.shardOf(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if o := sh.find(db, k); o != nil {
		return object.Weigh(o)
	}
	return 0
}

// roomToStore reports whether the budget has room for a value of so many bytes in place of the
// current value of a key.
func (tx *Tx) roomToStore(db int, k Key, bytes int64) bool {
	if bytes < LargeGrowth {
		return true
	}
	if o := tx.find(db, k); o != nil {
		bytes -= object.Weigh(o)
	}
	return tx.e.roomFor(bytes)
}
