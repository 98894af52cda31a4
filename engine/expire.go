package engine

import (
	"math"
	"slices"

	"rlserver/engine/effect"
	"rlserver/engine/moveback"
	"rlserver/engine/object"
)

// ExpireIf are conditions for Expire; all must hold.
type ExpireIf uint8

const (
	ExpireNX ExpireIf = 1 << iota // the key has no deadline
	ExpireXX                      // it has one
	ExpireGT                      // it has one before the new one; no deadline counts as infinite
	ExpireLT                      // it has one after the new one, or none
)

// hold reports whether a deadline may replace the current one, which is 0 for none.
func (c ExpireIf) hold(current, at int64) bool {
	return !(c&ExpireNX != 0 && current != 0 ||
		c&ExpireXX != 0 && current == 0 ||
		c&ExpireGT != 0 && (current == 0 || at <= current) ||
		c&ExpireLT != 0 && current != 0 && at >= current)
}

// Expire sets a key's deadline, Unix ms, if the conditions hold, and reports whether it did. A
// deadline that is not after now deletes the key instead. A missing key stays missing.
func (tx *Tx) Expire(k Key, at int64, conditions ExpireIf) bool {
	o := tx.lookup(k)
	if o == nil || !conditions.hold(o.Deadline(), at) {
		return false
	}
	if at <= tx.now {
		tx.delete(k, o)
	} else if at != o.Deadline() {
		tx.apply(o, &effect.Effect{Kind: effect.Expire, Key: k, ExpireAt: at})
	} else {
		tx.Rewrote(k, effect.Expire)
	}
	return true
}

// Persist removes a key's deadline, and reports whether there was one.
func (tx *Tx) Persist(k Key) bool {
	o := tx.lookup(k)
	if o == nil || o.Deadline() == 0 {
		return false
	}
	tx.apply(o, &effect.Effect{Kind: effect.Expire, Key: k})
	return true
}

// Deadline returns when a key expires, Unix ms; 0: never. The key exists up to and including that
// moment. ok is false for a missing key. The lookup does not count as an access.
func (tx *Tx) Deadline(k Key) (at int64, ok bool) {
	o := tx.peek(k)
	if o == nil {
		return 0, false
	}
	return o.Deadline(), true
}

// DeleteExpired makes lookups delete the expired keys that they meet, until end is called. They
// leave them while refused returns an error. It is called from any goroutine, under locks of
// shards.
func (e *Engine) DeleteExpired(refused func() error) (end func()) {
	e.refused.Store(&refused)
	return func() { e.refused.CompareAndSwap(&refused, nil) }
}

// Sweeper deletes expired keys that no call looks up. It walks through the keyspace repeatedly in
// small steps. Each step visits sweepBuckets buckets under one shard's lock, skips those in which
// no key is due, and deletes the due keys, a few hundred at most. It is for use by one goroutine.
type Sweeper struct {
	e      *Engine
	tx     *Tx
	shards int // how many it has finished; the index of the next is this modulo their number
	db     int
	cursor uint64
	visit  func(object.Object) (due int64)
	due    []object.Object
}

const sweepBuckets = 16

// NewSweeper returns a sweeper at the beginning of the keyspace.
func (e *Engine) NewSweeper() *Sweeper {
	s := &Sweeper{e: e, tx: e.NewTx()}
	s.visit = func(o object.Object) int64 {
		at := o.Deadline()
		if at == 0 {
			return math.MaxInt64
		}
		if o.Expired(s.tx.now) && !e.holdsObject(o) {
			s.due = append(s.due, o) // deleted at the end of the step
			return math.MaxInt64
		}
		return at
	}
	return s
}

// Rounds returns how many passes over the keyspace the sweeper has made, including a fraction for
// the current one. A key that has expired before a round begins, and is not moved, is deleted when
// the round ends.
func (s *Sweeper) Rounds() float64 {
	// cursors are positions in the order of 32-bit prefixes
	database := float64(s.cursor) / (1 << 32)
	shard := (float64(s.db) + database) / float64(s.e.databases)
	return (float64(s.shards) + shard) / float64(len(s.e.shards))
}

// Step does one step at now (Unix ms) and returns how many keys it deleted.
func (s *Sweeper) Step(now int64) (deleted int) {
	sh := &s.e.shards[s.shards%len(s.e.shards)]
	s.tx.locked = append(s.tx.locked, sh)
	s.tx.begin(now, s.db, true, true)
	defer s.tx.End()

	s.look(sh)
	for _, o := range s.due {
		s.tx.delete(s.e.Key(object.BytesOf(o.Name())), o)
	}
	deleted = len(s.due)
	sh.stats.Expired.Add(int64(deleted))
	clear(s.due)
	s.due = s.due[:0]
	return deleted
}

// look finds the due keys in the next buckets of a shard, and advances: after the last bucket to
// the next database with deadlines, and after the last database to the next shard.
func (s *Sweeper) look(sh *shard) {
	for s.db < s.e.databases && sh.dbs[s.db].expires == 0 {
		s.db, s.cursor = s.db+1, 0
	}
	if s.db < s.e.databases {
		s.tx.db = s.db
		s.cursor = sh.dbs[s.db].keys.Sweep(s.cursor, s.tx.now, sweepBuckets, s.visit)
		if s.cursor == 0 {
			s.db++
		}
	}
	if s.db == s.e.databases {
		s.db = 0
		s.shards++
	}
}

// MoveBack moves state that is ahead of the present back to it: the time latest becomes present,
// and times between the two are moved by the same amount. It returns how many keys have changed.
// Both are in Unix ms.
//
// What was used stays used: buckets, windows and logs are afterwards as they were at the latest
// moment, and the time left until each deadline is the same. Times up to the present are from
// before the clock was wrong, and stay; so do deadlines that are nearer to the present than to the
// latest moment. The state does not say which scores of a sorted set are times. A score is treated
// as a time if its member is named like a hit, and in a set with a deadline if it is an integer
// after the present and not after the deadline.
//
// Hits get new names. Time continues after the present, so these names are not used again.
func (e *Engine) MoveBack(latest, present int64) (changed int) {
	tx := e.NewTx()
	tx.BeginAll(latest, 0, true)
	defer tx.unlock()
	m := moveback.Mover{Present: present, By: latest - present, Key: e.Key, Apply: tx.apply}
	for _, sh := range tx.locked {
		for db := range sh.dbs {
			if sh.dbs[db].keys == nil {
				continue
			}
			tx.db = db
			for _, o := range slices.Collect(sh.dbs[db].keys.All()) {
				before := tx.changed
				if l, ok := o.(*object.Log); ok && l.Newest() > present {
					o = e.unpacked(db, e.Key(object.BytesOf(l.Name())), l)
				}
				m.Move(o)
				if tx.changed != before {
					changed++
				}
			}
		}
		sh.now = present
	}
	return changed
}
