package engine

import (
	"runtime"
	"sync/atomic"
)

// counts are how many keys a shard has in each database, for readers that take no lock. A call brings them up to date at its end, so that they never show
// a part of it; where several shards have changed, readers notice that they are being brought up to date and look again.
type counts struct {
	keys, expires []atomic.Int64 // by database
	changed       int            // the database whose counts are to be brought up to date, and one more; 0: none; manyDatabases: any
}

const manyDatabases = -1

func (c *counts) init(databases int) {
	c.keys, c.expires = make([]atomic.Int64, databases), make([]atomic.Int64, databases)
}

// note remembers that the counts of a database have changed.
func (c *counts) note(db int) {
	switch c.changed {
	case 0, db + 1:
		c.changed = db + 1
	default:
		c.changed = manyDatabases
	}
}

// recount brings the counts of a shard up to date.
func (sh *shard) recount() {
	lo, hi := 0, len(sh.dbs)
	if sh.counts.changed != manyDatabases {
		lo, hi = sh.counts.changed-1, sh.counts.changed
	}
	for db := lo; db < hi; db++ {
		sh.counts.keys[db].Store(int64(sh.dbs[db].size()))
		sh.counts.expires[db].Store(int64(sh.dbs[db].expires))
	}
	sh.counts.changed = 0
}

// recount brings the counts of the shards that a call has changed up to date, at its end.
func (tx *Tx) recount() {
	changed := 0
	for _, sh := range tx.locked {
		if sh.counts.changed != 0 {
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
		if sh.counts.changed != 0 {
			sh.recount()
		}
	}
}

// mostRecounts is how often Size looks again while calls on several shards end.
const mostRecounts = 100

// Size is how many keys a database has and how many of them have a deadline. Keys whose time has come count until they are deleted,
// as in Redis. It takes no lock: calls that have not ended do not count.
func (e *Engine) Size(db int) (keys, expires int) {
	for range mostRecounts {
		ended := e.recountsEnded.Load()
		keys, expires = e.sum(db)
		if e.recountsBegun.Load() == ended {
			break
		}
		runtime.Gosched()
	}
	return keys, expires
}

// Count is Engine.Size for a Tx that is idle or within BeginAll: then what the call has changed so far counts.
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

func (e *Engine) sum(db int) (keys, expires int) {
	for i := range e.shards {
		keys += int(e.shards[i].counts.keys[db].Load())
		expires += int(e.shards[i].counts.expires[db].Load())
	}
	return keys, expires
}

// counters are those of Stats, for one shard: changed under its lock, but read without.
type counters struct{ hits, misses, expired, evicted atomic.Int64 }

func (c *counters) count(found bool) {
	if found {
		c.hits.Add(1)
	} else {
		c.misses.Add(1)
	}
}

func (c *counters) reset() {
	c.hits.Store(0)
	c.misses.Store(0)
	c.expired.Store(0)
	c.evicted.Store(0)
}
