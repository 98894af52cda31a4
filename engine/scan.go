package engine

import (
	"iter"
	"math/rand/v2"
)

// A SCAN cursor is a shard and a position in it: shard<<cursorShift | position. Both orders are those of the keys' hashes,
// so a key that is there throughout is visited whatever comes and goes around it, and never twice.
const cursorShift = 32

// scanStep is how many keys Scan looks at under one hold of a shard.
const scanStep = 256

// scanned is a key that Scan has come upon.
type scanned struct {
	name string // never written over, so it may be read when the shard is let go
	kind Type
}

// Scan visits keys of the database from the cursor on until it has seen about count of them, and returns the cursor to go on
// from, 0 after the last. 0 begins; a cursor that no scan returned may visit nothing. A name holds as long as it is needed, and must
// not be written to.
//
// It is called on an idle Tx, not one that was given to Begin, and locks one shard after the other, for a few hundred keys at a time; visit is called
// under no lock. Within BeginAll it goes by the locks, and the time, that are held. The next End returns the position of the latest change it has seen.
func (tx *Tx) Scan(now int64, db int, cursor uint64, count int, visit func(name []byte, t Type)) (next uint64) {
	var found []scanned
	index, position := cursor>>cursorShift, cursor&(1<<cursorShift-1)
	for index < uint64(len(tx.e.shards)) {
		if count <= 0 {
			return index<<cursorShift | position
		}
		var seen int
		position, seen = tx.scanShard(&tx.e.shards[index], now, db, position, min(count, scanStep), &found)
		for _, key := range found {
			visit(bytesOf(key.name), key.kind)
		}
		clear(found)
		found = found[:0]
		if count -= seen; position == 0 {
			index++
		}
	}
	return 0
}

// scanShard takes about count keys of a shard from the position on. Those that have expired are seen but not found.
func (tx *Tx) scanShard(sh *shard, now int64, db int, position uint64, count int, found *[]scanned) (next uint64, seen int) {
	if len(tx.locked) == 0 {
		tx.locked = append(tx.locked, sh)
		tx.begin(now, db, false)
		defer tx.endStep()
	}
	keys := sh.dbs[db].keys
	if keys == nil {
		return 0, 0
	}
	next = keys.Scan(position, count, func(o object) {
		seen++
		if h := o.head(); !h.expired(tx.now) {
			*found = append(*found, scanned{h.name, o.kind()})
		}
	})
	return next, seen
}

// Keys yields every key of the database, in no order that means anything. It is for a call on the whole keyspace. A name
// holds until the next change or End, and must not be written to.
func (tx *Tx) Keys() iter.Seq2[[]byte, Type] {
	return func(yield func([]byte, Type) bool) {
		for _, sh := range tx.locked {
			keys := sh.dbs[tx.db].keys
			if keys == nil {
				continue
			}
			for o := range keys.All() {
				if !o.head().expired(tx.now) && !yield(bytesOf(o.head().name), o.kind()) {
					return
				}
			}
		}
	}
}

// randomTries is how often RandomKey tries its luck before it takes what comes first.
const randomTries = 100

// RandomKey picks a key of the database; ok is false if there is none. It is for a call on the whole keyspace. The name holds
// as long as those of Keys.
//
// Each key has the same chance as long as not nearly all of them have expired: then it is the first live one.
func (tx *Tx) RandomKey(r *rand.Rand) (name []byte, ok bool) {
	total := tx.Size()
	if total == 0 {
		return nil, false
	}
	for range randomTries {
		if h := tx.nth(r.IntN(total), r).head(); !h.expired(tx.now) {
			return bytesOf(h.name), true
		}
	}
	for name := range tx.Keys() {
		return name, true
	}
	return nil, false
}

// nth picks a key of the shard that holds the n-th.
func (tx *Tx) nth(n int, r *rand.Rand) object {
	for _, sh := range tx.locked {
		s := &sh.dbs[tx.db]
		if n < s.size() {
			o, _ := s.keys.Random(r)
			return o
		}
		n -= s.size()
	}
	panic("engine: more keys were counted than there are")
}

func (s *space) size() int {
	if s.keys == nil {
		return 0
	}
	return s.keys.Len()
}
