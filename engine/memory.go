package engine

import (
	"sync/atomic"

	"rlserver/engine/effect"
	"rlserver/engine/object"
)

// memory is what the keys weigh, what they may weigh, and what goes when they weigh more.
type memory struct {
	// the sum of what the shards have reported; each is behind by less than reportGrain
	used atomic.Int64
	_    [56]byte // what follows is read with every call, and hardly ever written

	budget    atomic.Int64 // math.MaxInt64: any
	policy    atomic.Uint32
	samples   atomic.Int64
	frequency atomic.Bool   // access clocks count accesses
	turn      atomic.Uint64 // whose shard is the next to make room, modulo their number
}

// reportGrain is by how many bytes a shard changes before it reports to the engine, so that not all
// shards write to one place with every call.
const reportGrain = 1 << 10

// Weight is what all keys take, in bytes, by the estimate that MemoryUsage gives. It takes no lock.
func (e *Engine) Weight() (bytes int64) {
	for i := range e.shards {
		bytes += e.shards[i].weight.Load()
	}
	return bytes
}

// grow notes that the keys of a database take n bytes more than they did.
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

// grown notes by how much an effect has changed what is under its key.
func (e *Engine) grown(f *effect.Effect, n int64) { e.shardOf(f.Key).grow(f.DB, n) }

// MemoryUsage estimates how many bytes a key takes, its name and its share of the keyspace's table
// included. ok is false if there is no such key. However large it is, that takes no time: nothing
// is walked through.
func (tx *Tx) MemoryUsage(k Key) (bytes int64, ok bool) {
	o := tx.peek(k)
	if o == nil {
		return 0, false
	}
	return object.Weigh(o), true
}

// Usage is MemoryUsage outside of a call; 0 if there is no such key. It takes the key's lock
// itself.
func (e *Engine) Usage(db int, k Key) (bytes int64) {
	sh := e.shardOf(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if o := sh.find(db, k); o != nil {
		return object.Weigh(o)
	}
	return 0
}

// roomToStore reports whether there is room for so many bytes under a key, in place of what it
// holds.
func (tx *Tx) roomToStore(db int, k Key, bytes int64) bool {
	if bytes < LargeGrowth {
		return true
	}
	if o := tx.find(db, k); o != nil {
		bytes -= object.Weigh(o)
	}
	return tx.e.roomFor(bytes)
}
