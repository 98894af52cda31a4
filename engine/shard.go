package engine

import (
	"sync"
	"sync/atomic"

	"rlserver/dict"
)

// maxShards keeps a SCAN cursor, shard and position in it, below 2^53, the largest integer a JavaScript client can hold.
const maxShards = 4096

// shard is a part of the keyspace behind one lock. All databases live in every shard: a key's hash does not depend on its database.
type shard struct {
	mu    sync.Mutex
	e     *Engine
	index int
	now   int64 // the latest time any call brought: time never runs backward for what is kept here

	// position is that of the last change in the journal. It is changed under the lock, but read without.
	position atomic.Uint64

	dbs []space
	seq hitSequence

	weight atomic.Int64 // bytes that all keys take; changed under the lock, but read without
	told   int64        // of them, what the engine's sum has in it
	hand   hand         // where the next keys to be evicted are looked for
	dice   uint64       // see roll

	evicting bool // what goes now goes to make room

	denied denials

	watches map[watchedKey][]watcher // who wants to know of changes to which keys; mostly nil

	stats   counters
	counts  counts
	changes atomic.Int64 // changed under the lock, but read without

	_ [64]byte // a shard's lock shares no cache line with its neighbour's
}

// space is one database's keys in one shard.
type space struct {
	keys    *dict.Dict[object] // nil while it never held a key
	expires int                // how many of them have a deadline
	weight  int64              // bytes that they take
	walk    *spaceWalk         // of the snapshot being taken; nil if there is none, or keys are younger than it
}

func (sh *shard) init(e *Engine, index int) {
	sh.e = e
	sh.index = index
	sh.dbs = make([]space, e.databases)
	sh.counts.init(e.databases)
	sh.dice = e.hasher.Sum([]byte{byte(index), byte(index >> 8)})
}

// place is a key's hash as the shard's dict knows it: without the bits that chose the shard, which all its keys share.
func (e *Engine) place(hash uint64) uint64 { return hash << e.shardBits }

// continues notes that a log comes here that hits were given names in there.
func (sh *shard) continues(from *shard) { sh.seq.gave(from.seq.at, from.seq.free) }

func (sh *shard) find(db int, k Key) object {
	keys := sh.dbs[db].keys
	if keys == nil {
		return nil
	}
	o, _ := keys.Find(sh.e.place(k.hash), func(o object) bool { return o.head().name == string(k.Name) })
	return o
}

// insert adds an object whose name the database lacks. To come to be, or to come here, is a use.
func (sh *shard) insert(db int, hash uint64, o object) {
	o.touch(sh.e.memory.stamp(sh, o, true))
	s := &sh.dbs[db]
	if s.keys == nil {
		s.keys = dict.New(func(o object) uint64 { return sh.e.place(sh.e.hasher.Sum(bytesOf(o.head().name))) })
	}
	s.keys.Insert(sh.e.place(hash), o)
	sh.counts.note(db)
	if at := o.head().expireAt; at != 0 {
		s.expires++
		s.keys.Mark(sh.e.place(hash), at)
	}
	sh.grow(db, weigh(o))
}

func (sh *shard) remove(db int, hash uint64, o object) {
	s := &sh.dbs[db]
	s.keys.Remove(sh.e.place(hash), func(x object) bool { return x == o })
	sh.counts.note(db)
	if o.head().expireAt != 0 {
		s.expires--
	}
	sh.grow(db, -weigh(o))
}

// flush empties a database.
func (sh *shard) flush(db int) {
	sh.grow(db, -sh.dbs[db].weight)
	sh.dbs[db] = space{}
	sh.counts.note(db)
}

// setDeadline changes when an object that is in the database expires.
func (sh *shard) setDeadline(db int, hash uint64, o object, at int64) {
	s, h := &sh.dbs[db], o.head()
	if (h.expireAt != 0) != (at != 0) {
		sh.counts.note(db)
	}
	if h.expireAt != 0 {
		s.expires--
	}
	h.expireAt = at
	if at != 0 {
		s.expires++
		s.keys.Mark(sh.e.place(hash), at)
	}
}
