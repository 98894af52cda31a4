package engine

import (
	"runtime"
	"sync"
	"sync/atomic"

	"rlserver/engine/counts"
	"rlserver/engine/denials"
	"rlserver/engine/eviction"
	"rlserver/engine/object"
	"rlserver/engine/sampling"
	"rlserver/engine/snapshot"
	"rlserver/engine/table"
	"rlserver/engine/watches"
	"rlserver/zset"
)

// maxShards keeps a SCAN cursor, shard and position in it, below 2^53, the largest integer a
// JavaScript client can hold.
const maxShards = 4096

// shard is a part of the keyspace behind one lock. All databases live in every shard: a key's hash
// does not depend on its database.
type shard struct {
	mu    sync.Mutex
	e     *Engine
	index int
	moment

	// position is the journal position of the last change. Changed under the lock, but read
	// without.
	position atomic.Uint64

	dbs []space

	bytes    counts.Bytes
	reported int64         // how much of weight the memory contains
	hand     sampling.Hand // where eviction samples next
	dice     eviction.Dice

	evicting bool // the deletion in progress is an eviction

	denied denials.Counters

	watches watches.Watchers[*Tx] // notified of changes to their keys; mostly nil

	stats   counts.Lookups
	counts  counts.Counts
	few     zset.Borrowed                 // the hits of a log that changes and is a record
	fewText [32]byte                      // those of a new log
	types   [len(object.Types)]counts.Sum // keys of each type
	held    counts.SharedLoad             // the reservations of all databases
	changes atomic.Int64                  // changed under the lock, but read without

	discarded bool // the memory does not contain this shard any more

	_ [64]byte // a shard's lock shares no cache line with its neighbour's
}

// space is one database's keys in one shard.
type space struct {
	keys    *table.Table           // nil until it holds a key
	expires int                    // how many of them have a deadline
	weight  int64                  // bytes that the keys take
	types   [len(object.Types)]int // how many of them are of each type
	held    counts.Load            // their reservations
	// of the snapshot being taken; nil without one, or if the database was empty when it began
	walk *snapshot.Walk
}

func (sh *shard) init(e *Engine, index int) {
	sh.e = e
	sh.index = index
	sh.dbs = make([]space, e.databases)
	sh.counts.Init(e.databases)
	sh.dice = eviction.Dice(e.hasher.Sum([]byte{byte(index), byte(index >> 8)}))
}

// place returns the hash that the shard's dict uses: without the bits that choose the shard, which
// are the same for all its keys.
func (e *Engine) place(hash uint64) uint64 { return hash << (e.shardBits & 63) }

func (sh *shard) find(db int, k Key) object.Object {
	if keys := sh.dbs[db].keys; keys != nil {
		return keys.Find(sh.e.place(k.Hash), k.Name)
	}
	return nil
}

// space returns a database's keys, which exist from then on.
func (sh *shard) space(db int) *space {
	s := &sh.dbs[db]
	if s.keys == nil {
		hash := func(name string) uint64 { return sh.e.place(sh.e.hasher.Sum(object.BytesOf(name))) }
		s.keys = table.New(hash, &sh.bytes.Idle)
	}
	return s
}

// insert adds an object whose name the database lacks, and returns the one that the database has
// from now on. It counts as an access.
func (sh *shard) insert(db int, hash uint64, o object.Object) object.Object {
	sh.keep(db, hash)
	return sh.inserted(db, hash, sh.space(db).keys.Insert(sh.e.place(hash), o))
}

// create is insert for an unused limiter, with room for hits, see table.Table.Create.
func (sh *shard) create(db int, k Key, f object.Form, room int) object.Object {
	sh.keep(db, k.Hash)
	return sh.inserted(db, k.Hash, sh.space(db).keys.Create(sh.e.place(k.Hash), f, k.Name, room))
}

func (sh *shard) inserted(db int, hash uint64, o object.Object) object.Object {
	o.Touch(sh.e.memory.stamp(sh, o, true))
	s := &sh.dbs[db]
	sh.counts.Note(db)
	sh.countType(s, o, 1)
	sh.holds(db, object.ExtensionOf(o).Held())
	if at := o.Deadline(); at != 0 {
		s.expires++
		s.keys.Mark(sh.e.place(hash), at)
	}
	sh.grow(db, object.Weigh(o))
	return o
}

func (sh *shard) remove(db int, hash uint64, o object.Object) {
	s := &sh.dbs[db]
	sh.seq.SkipUsed()
	s.keys.Remove(sh.e.place(hash), o)
	s.walk.Removed(sh.e.place(hash))
	sh.counts.Note(db)
	sh.countType(s, o, -1)
	sh.holds(db, counts.Load{}.Minus(object.ExtensionOf(o).Held()))
	if o.Deadline() != 0 {
		s.expires--
	}
	sh.grow(db, -object.Weigh(o))
}

// flush empties a database.
func (sh *shard) flush(db int) {
	sh.seq.SkipUsed()
	sh.grow(db, -sh.dbs[db].weight)
	sh.holds(db, counts.Load{}.Minus(sh.dbs[db].held))
	for i, n := range sh.dbs[db].types {
		sh.types[i].Add(int64(-n))
	}
	if keys := sh.dbs[db].keys; keys != nil {
		keys.Drop()
	}
	sh.dbs[db] = space{}
	sh.counts.Note(db)
}

// setDeadline changes when an object that is in the database expires.
func (sh *shard) setDeadline(db int, hash uint64, o object.Object, at int64) {
	s, before := &sh.dbs[db], o.Deadline()
	o.SetDeadline(at)
	switch {
	case before == 0 && at != 0:
		s.expires++
		sh.counts.Note(db)
		s.keys.Mark(sh.e.place(hash), at)
	case before != 0 && at == 0:
		s.expires--
		sh.counts.Note(db)
	case at < before: // otherwise the mark is early enough
		s.keys.Mark(sh.e.place(hash), at)
	}
}

// countType adds n to the number of keys of an object's type.
func (sh *shard) countType(s *space, o object.Object, n int) {
	i := o.Kind().Number()
	s.types[i] += n
	sh.types[i].Add(int64(n))
}

// holds records that the keys of a database have more reservations by some.
func (sh *shard) holds(db int, more counts.Load) {
	if more != (counts.Load{}) {
		sh.dbs[db].held = sh.dbs[db].held.Plus(more)
		sh.held.Add(more)
	}
}

// TypeCount is how many keys of all databases hold a type.
type TypeCount struct {
	Type object.Type
	Keys int64
}

// Types returns the number of keys of all databases for each type. Expired keys count until they
// are deleted. It takes no lock.
func (e *Engine) Types() []TypeCount {
	list := make([]TypeCount, len(object.Types))
	for i := range list {
		list[i].Type = object.Types[i]
		for j := range e.shards {
			list[i].Keys += e.shards[j].types[i].Load()
		}
	}
	return list
}

// recount updates the counts of a shard.
func (sh *shard) recount() {
	sh.bytes.Show()
	counts.Show(sh.types[:])
	sh.counts.Update(func(db int) (keys, expires int) { return sh.dbs[db].size(), sh.dbs[db].expires })
}

// recount updates the counts of the shards that a call has changed, at its end.
func (tx *Tx) recount() {
	changed := 0
	for _, sh := range tx.locked {
		sh.bytes.Show()
		if sh.counts.Changed() {
			changed++
		}
	}
	if changed == 0 {
		return
	}
	if changed > 1 {
		tx.e.recountsBegun.Add(1)
		defer tx.e.recountsEnded.Add(1)
	}
	for _, sh := range tx.locked {
		if sh.counts.Changed() {
			sh.recount()
		}
	}
}

// maxRecounts is how often Size reads again while calls on several shards end.
const maxRecounts = 100

// Size returns how many keys a database has and how many of them have a deadline. Expired keys
// count until they are deleted, as in Redis. It takes no lock: changes of calls that have not ended
// do not count.
func (e *Engine) Size(db int) (keys, expires int) {
	for range maxRecounts {
		ended := e.recountsEnded.Load()
		keys, expires = e.sum(db)
		if e.recountsBegun.Load() == ended {
			break
		}
		runtime.Gosched()
	}
	return keys, expires
}

// Count is Engine.Size for a Tx that is idle or within BeginAll. Within BeginAll the changes of the
// call count.
func (tx *Tx) Count(db int) (keys, expires int) {
	if len(tx.locked) == 0 {
		return tx.e.Size(db)
	}
	for _, sh := range tx.locked {
		keys += sh.dbs[db].size()
		expires += sh.dbs[db].expires
	}
	return keys, expires
}

// SizeUnlessHeld is Count for a call at now (Unix ms), and exact: what scripts have changed that
// have not ended does not count. It reports false if one of them holds keys for too long.
func (tx *Tx) SizeUnlessHeld(now int64, db int) (keys int, ok bool) {
	before := tx.e.Holds.Begun()
	keys, _ = tx.Count(db)
	if len(tx.locked) > 0 || tx.e.Holds.Empty() && tx.e.Holds.Begun() == before {
		return keys, true
	}
	if !tx.BeginUnlessHeld(now, db, nil, true, false) {
		return 0, false
	}
	defer tx.endStep()
	return tx.size(db), true
}

func (e *Engine) sum(db int) (keys, expires int) {
	for i := range e.shards {
		k, x := e.shards[i].counts.Of(db)
		keys, expires = keys+k, expires+x
	}
	return keys, expires
}
