package engine

import "math"

// ExpireIf are conditions for Expire, of which all must hold.
type ExpireIf uint8

const (
	ExpireNX ExpireIf = 1 << iota // the key has no deadline
	ExpireXX                      // it has one
	ExpireGT                      // it has one before the new one; none is later than any
	ExpireLT                      // it has one after the new one, or none
)

// hold tells whether a deadline may take the place of the current one, which is 0 for none.
func (c ExpireIf) hold(current, at int64) bool {
	return !(c&ExpireNX != 0 && current != 0 ||
		c&ExpireXX != 0 && current == 0 ||
		c&ExpireGT != 0 && (current == 0 || at <= current) ||
		c&ExpireLT != 0 && current != 0 && at >= current)
}

// Expire sets a key's deadline, Unix ms, if the conditions hold, and tells whether it did. A deadline that is not after now deletes
// the key instead. A missing key has nothing to set.
func (tx *Tx) Expire(k Key, at int64, conditions ExpireIf) bool {
	o := tx.lookup(k)
	if o == nil || !conditions.hold(o.head().expireAt, at) {
		return false
	}
	if at <= tx.now {
		tx.delete(k, o)
	} else if at != o.head().expireAt {
		tx.apply(o, &Effect{Kind: EffectExpire, Key: k, ExpireAt: at})
	}
	return true
}

// Persist takes a key's deadline away, and tells whether there was one.
func (tx *Tx) Persist(k Key) bool {
	o := tx.lookup(k)
	if o == nil || o.head().expireAt == 0 {
		return false
	}
	tx.apply(o, &Effect{Kind: EffectExpire, Key: k})
	return true
}

// Deadline is when a key expires, Unix ms: it is there up to and including that moment; 0: never. ok is false for a missing key.
// To ask is not to use the key, in the eyes of the access clock.
func (tx *Tx) Deadline(k Key) (at int64, ok bool) {
	o := tx.peek(k)
	if o == nil {
		return 0, false
	}
	return o.head().expireAt, true
}

// Sweeper deletes keys whose time has come although nobody asks for them. It walks round and round the keyspace in small steps.
// Each holds one shard's lock for as long as it takes to look at sweepBuckets buckets, which tell by themselves whether anything
// in them is due, and to delete the keys that are, a few hundred at most. For use by one goroutine.
type Sweeper struct {
	e      *Engine
	tx     *Tx
	shards int // how many it has been through; the next one is at this modulo their number
	db     int
	cursor uint64
	visit  func(object) (due int64, drop bool)
	due    []object
}

const sweepBuckets = 16

// NewSweeper returns a sweeper at the beginning of the keyspace.
func (e *Engine) NewSweeper() *Sweeper {
	s := &Sweeper{e: e, tx: e.NewTx()}
	s.visit = func(o object) (int64, bool) {
		h := o.head()
		if h.expireAt == 0 {
			return math.MaxInt64, false
		}
		if h.expired(s.tx.now) {
			s.due = append(s.due, o) // deleted at the end of the step, as an effect like any other
			return math.MaxInt64, false
		}
		return h.expireAt, false
	}
	return s
}

// Rounds is how often the sweeper has been through the keyspace, in parts too: 1.5 is once and a half. A key that has
// expired before a round begins, and stays where it is, is gone when the round ends.
func (s *Sweeper) Rounds() float64 {
	database := float64(s.cursor) / (1 << 32) // cursors are positions in the order of 32-bit prefixes
	shard := (float64(s.db) + database) / float64(s.e.databases)
	return (float64(s.shards) + shard) / float64(len(s.e.shards))
}

// Step does one step at now (Unix ms) and returns how many keys it deleted.
func (s *Sweeper) Step(now int64) (deleted int) {
	sh := &s.e.shards[s.shards%len(s.e.shards)]
	s.tx.locked = append(s.tx.locked, sh)
	s.tx.begin(now, s.db, true)
	defer s.tx.End()

	s.look(sh)
	for _, o := range s.due {
		s.tx.delete(s.e.Key(bytesOf(o.head().name)), o)
	}
	deleted = len(s.due)
	sh.stats.expired.Add(int64(deleted))
	clear(s.due)
	s.due = s.due[:0]
	return deleted
}

// look finds what is due in the next buckets of a shard, and moves on: to the next database that has anything with a deadline when
// one is through, and to the next shard after the last.
func (s *Sweeper) look(sh *shard) {
	for s.db < s.e.databases && sh.dbs[s.db].expires == 0 {
		s.db, s.cursor = s.db+1, 0
	}
	if s.db < s.e.databases {
		s.tx.db = s.db
		s.cursor, _ = sh.dbs[s.db].keys.Sweep(s.cursor, s.tx.now, sweepBuckets, s.visit)
		if s.cursor == 0 {
			s.db++
		}
	}
	if s.db == s.e.databases {
		s.db = 0
		s.shards++
	}
}
