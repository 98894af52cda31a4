package engine

import "math"

// Sweeper deletes keys whose time has come although nobody asks for them. It walks round and round the keyspace in small steps;
// each holds one shard's lock for as long as it takes to look at sweepBuckets buckets, which tell by themselves whether anything
// in them is due, and to delete the keys that are: some tens of microseconds. For use by one goroutine.
type Sweeper struct {
	e      *Engine
	tx     *Tx
	shards int // how many it has been through; the next one is at this modulo their number
	db     int
	cursor uint64
	visit  func(object) (due int64, drop bool)
	due    []string
}

const sweepBuckets = 32

// NewSweeper returns a sweeper at the beginning of the keyspace.
func (e *Engine) NewSweeper() *Sweeper {
	s := &Sweeper{e: e, tx: e.NewTx()}
	s.visit = func(o object) (int64, bool) {
		h := o.head()
		if h.expireAt == 0 {
			return math.MaxInt64, false
		}
		if h.expired(s.tx.now) {
			s.due = append(s.due, h.name) // deleted afterwards, as an effect like any other
		}
		return h.expireAt, false
	}
	return s
}

// Rounds is how often the sweeper has been through the keyspace, in shards: 1.5 is once and a half.
func (s *Sweeper) Rounds() float64 { return float64(s.shards) / float64(len(s.e.shards)) }

// Step does one step at now (Unix ms) and returns how many keys it deleted.
func (s *Sweeper) Step(now int64) (deleted int) {
	sh := &s.e.shards[s.shards%len(s.e.shards)]
	s.tx.locked = append(s.tx.locked, sh)
	s.tx.begin(now, s.db, true)
	defer s.tx.End()

	if keys := sh.dbs[s.db].keys; keys != nil {
		s.cursor, _ = keys.Sweep(s.cursor, s.tx.now, sweepBuckets, s.visit)
	}
	for _, name := range s.due {
		k := s.e.Key(bytesOf(name))
		s.tx.delete(k, sh.find(s.db, k))
	}
	deleted = len(s.due)
	sh.stats.Expired += int64(deleted)
	clear(s.due)
	s.due = s.due[:0]
	s.advance()
	return deleted
}

// advance goes on to the next database when the shard's part of this one is through, and after the last to the next shard.
func (s *Sweeper) advance() {
	if s.cursor != 0 {
		return
	}
	if s.db++; s.db == s.e.databases {
		s.db = 0
		s.shards++
	}
}
