package engine

import "math/rand/v2"

// A SCAN cursor is a shard and a position in it: shard<<cursorShift | position. Both orders are those of the keys' hashes,
// so a key that is there throughout is visited whatever comes and goes around it, and never twice.
const cursorShift = 32

// Scan visits keys of the database from the cursor on until it has visited about count of them, and returns the cursor to go on
// from, 0 after the last. 0 begins. It locks one shard after the other, so it is not given to Begin: call it on an idle Tx.
// name holds until visit returns.
func (tx *Tx) Scan(now int64, db int, cursor uint64, count int, visit func(name string, t Type)) (next uint64) {
	index, position := cursor>>cursorShift, cursor&(1<<cursorShift-1)
	for visited := 0; index < uint64(len(tx.e.shards)); index, position = index+1, 0 {
		if visited >= count {
			return index << cursorShift
		}
		position = tx.scanShard(&tx.e.shards[index], now, db, position, count-visited, func(o object) {
			visited++
			if !o.head().expired(tx.now) {
				visit(o.head().name, o.kind())
			}
		})
		if position != 0 {
			return index<<cursorShift | position
		}
	}
	return 0
}

func (tx *Tx) scanShard(sh *shard, now int64, db int, position uint64, count int, visit func(object)) (next uint64) {
	tx.locked = append(tx.locked, sh)
	tx.begin(now, db, false)
	defer tx.End()
	if keys := sh.dbs[db].keys; keys != nil {
		return keys.Scan(position, count, visit)
	}
	return 0
}

// Each visits every key of the database; the whole keyspace is locked by BeginAll.
func (tx *Tx) Each(visit func(name string, t Type)) {
	for _, sh := range tx.locked {
		if sh.dbs[tx.db].keys == nil {
			continue
		}
		for o := range sh.dbs[tx.db].keys.All() {
			if !o.head().expired(tx.now) {
				visit(o.head().name, o.kind())
			}
		}
	}
}

// RandomKey picks a key of the database, each with the same chance; the whole keyspace is locked by BeginAll. ok is false if there is none.
// Keys whose time has come are passed over; if chance finds nothing else it takes the first live one.
func (tx *Tx) RandomKey(r *rand.Rand) (name string, ok bool) {
	total := 0
	for _, sh := range tx.locked {
		total += sh.dbs[tx.db].size()
	}
	for tries := 0; total > 0 && tries < 100; tries++ {
		if h := tx.nth(r.IntN(total), r).head(); !h.expired(tx.now) {
			return h.name, true
		}
	}
	tx.Each(func(live string, _ Type) {
		if !ok {
			name, ok = live, true
		}
	})
	return name, ok
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

// Size is how many keys a database has and how many of them have a deadline. Keys whose time has come count until they are deleted, as in Redis.
func (e *Engine) Size(db int) (keys, expires int) {
	for i := range e.shards {
		sh := &e.shards[i]
		sh.mu.Lock()
		keys += sh.dbs[db].size()
		expires += sh.dbs[db].expires
		sh.mu.Unlock()
	}
	return keys, expires
}
