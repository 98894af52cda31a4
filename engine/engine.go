package engine

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"rlserver/dict"
)

// Options say what an engine is made of. The zero value of a field means its default.
type Options struct {
	Databases int       // how many keyspaces SELECT chooses among; default 16
	Shards    int       // rounded up to a power of two, at most 4096; default 64
	Seed      [2]uint64 // keys the hash of names: secret on a server that strangers can reach, fixed where replies must repeat
	Journal   Journal   // where effects go; nil: nowhere
}

// Journal takes the effects of every call, in the order in which they were applied to each key.
type Journal interface {
	// Append is called under the locks of the shards that changed, with all effects of one call at now (Unix ms): they are kept
	// together or not at all. The slice and what it points to belong to the caller again when Append returns.
	Append(now int64, effects []Effect) Position
	// Wait returns when everything up to the position is as durable as the journal's policy promises.
	// A reply waits for the latest change it may have seen: see Tx.End.
	Wait(Position) error
}

// Position is a place in a journal; 0 is its beginning, where there is nothing to wait for.
type Position uint64

// Engine is the keyspace: a state machine that is handed the time with every call.
// Its methods may be called from any goroutine.
type Engine struct {
	hasher    dict.Hasher
	shards    []shard
	shardBits int
	databases int
	journal   Journal
	policies  policies     // to read takes the lock of any shard, or naming; to write takes all of them and naming
	naming    sync.RWMutex // nobody who holds it waits for a shard
	changing  sync.Mutex   // held while a call changes policies, which takes longer than it holds all locks
	memory    memory

	recountsBegun, recountsEnded atomic.Uint64 // how often counts of several shards were brought up to date at once

	snapshot *Snapshot // the one being taken; set and cleared under all locks, so that any one suffices to read it
}

// New returns an empty engine.
func New(o Options) *Engine {
	if o.Databases <= 0 {
		o.Databases = 16
	}
	if o.Shards <= 0 {
		o.Shards = 64
	}
	o.Shards = min(o.Shards, maxShards)
	shardBits := bits.Len(uint(o.Shards - 1))
	e := &Engine{
		hasher:    dict.NewHasher(o.Seed[0], o.Seed[1]),
		shards:    make([]shard, 1<<shardBits),
		shardBits: shardBits,
		databases: o.Databases,
		journal:   o.Journal,
	}
	e.memory.budget.Store(math.MaxInt64)
	e.memory.samples.Store(DefaultSamples)
	e.policies = make(policies)
	for i := range e.shards {
		e.shards[i].init(e, i)
	}
	return e
}

// Databases is how many keyspaces there are; they are numbered from 0.
func (e *Engine) Databases() int { return e.databases }

// Key is a key's name with its hash, which is computed once per call and serves to choose the shard and to find the key in it.
// The name belongs to the caller.
type Key struct {
	Name []byte
	hash uint64
}

// Key hashes a name.
func (e *Engine) Key(name []byte) Key {
	return Key{Name: name, hash: e.hasher.Sum(name)}
}

// shardOf gives the shard that holds a key: the top bits of its hash. Each shard's dict works on the bits below.
func (e *Engine) shardOf(k Key) *shard {
	return &e.shards[e.shardIndex(k.hash)]
}

func (e *Engine) shardIndex(hash uint64) int {
	return int(hash >> (64 - e.shardBits)) // a shift by 64 gives 0: one shard has no bits to choose by
}

// Changes is how many effects there were since the engine was made. It takes no lock.
func (e *Engine) Changes() (sum int64) {
	for i := range e.shards {
		sum += e.shards[i].changes.Load()
	}
	return sum
}

// Stats are counters since the start, or since ResetStats.
type Stats struct {
	Hits    int64 // lookups by readers that found a key
	Misses  int64 // and those that did not
	Expired int64 // keys deleted because their time had come
	Evicted int64 // keys deleted to make room
}

// ResetStats sets all counters to 0, those of denials and of the policies too.
func (e *Engine) ResetStats() { e.NewTx().ResetStats() }

// eachShard visits one shard after the other under its lock. It is called on an idle Tx, or within BeginAll, whose locks serve then.
func (tx *Tx) eachShard(visit func(*shard)) {
	held := len(tx.locked) > 0
	for i := range tx.e.shards {
		sh := &tx.e.shards[i]
		if !held {
			sh.mu.Lock()
		}
		visit(sh)
		if !held {
			sh.mu.Unlock()
		}
	}
}

// Stats adds up the shards' counters. It takes no lock.
func (e *Engine) Stats() (sum Stats) {
	for i := range e.shards {
		c := &e.shards[i].stats
		sum.Hits += c.hits.Load()
		sum.Misses += c.misses.Load()
		sum.Expired += c.expired.Load()
		sum.Evicted += c.evicted.Load()
	}
	return sum
}

// ResetStats is Engine.ResetStats for a Tx that is idle or within BeginAll.
func (tx *Tx) ResetStats() {
	for _, p := range tx.e.Policies() {
		p.tally.reset()
	}
	tx.eachShard(func(sh *shard) {
		sh.stats.reset()
		sh.denied = denials{}
	})
}
