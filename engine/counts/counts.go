// Package counts has the numbers of keys of a shard.
package counts

import "sync/atomic"

// Counts are how many keys a shard has in each database, for readers that take no lock. A call
// updates them at its end, so that they never show a part of it; if several shards have changed,
// readers notice the update and read again.
type Counts struct {
	keys, expires []atomic.Int64 // by database
	// index + 1 of the database whose counts are out of date; 0: none; manyDatabases: possibly all
	changed int
}

const manyDatabases = -1

// Init sets the number of databases.
func (c *Counts) Init(databases int) {
	c.keys, c.expires = make([]atomic.Int64, databases), make([]atomic.Int64, databases)
}

// Note records that the counts of a database have changed.
func (c *Counts) Note(db int) {
	switch c.changed {
	case 0, db + 1:
		c.changed = db + 1
	default:
		c.changed = manyDatabases
	}
}

// NoteAll records that the counts of all databases may have changed.
func (c *Counts) NoteAll() { c.changed = manyDatabases }

// Changed reports whether counts are out of date.
func (c *Counts) Changed() bool { return c.changed != 0 }

// Update updates what is out of date. size returns how many keys a database has, and how many of
// them have a deadline.
func (c *Counts) Update(size func(db int) (keys, expires int)) {
	lo, hi := 0, len(c.keys)
	if c.changed != manyDatabases {
		lo, hi = c.changed-1, c.changed
	}
	for db := lo; db < hi; db++ {
		keys, expires := size(db)
		c.keys[db].Store(int64(keys))
		c.expires[db].Store(int64(expires))
	}
	c.changed = 0
}

// Of returns how many keys a database has, and how many of them have a deadline.
func (c *Counts) Of(db int) (keys, expires int) {
	return int(c.keys[db].Load()), int(c.expires[db].Load())
}
