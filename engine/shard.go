package engine

import (
	"bytes"
	"cmp"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"rlserver/dict"
	"rlserver/engine/object"
	"rlserver/engine/rule"
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
	now   int64 // the latest time any call brought: time never runs backward for what is kept here

	// position is that of the last change in the journal. It is changed under the lock, but read
	// without.
	position atomic.Uint64

	dbs []space
	seq hitSequence

	weight   atomic.Int64 // bytes that all keys take; changed under the lock, but read without
	reported int64        // of them, what the sum of the engine has in it
	hand     hand         // where the next keys to be evicted are looked for
	dice     uint64       // see roll

	evicting bool // what goes now goes to make room

	denied denials

	watches map[watchedKey][]watcher // notified of changes to their keys; mostly nil

	stats   counters
	counts  counts
	types   [len(types)]atomic.Int64 // keys of each type; changed under the lock, but read without
	changes atomic.Int64             // changed under the lock, but read without

	_ [64]byte // a shard's lock shares no cache line with its neighbour's
}

// space is one database's keys in one shard.
type space struct {
	keys    *dict.Dict[object.Object] // nil while it never held a key
	expires int                       // how many of them have a deadline
	weight  int64                     // bytes that they take
	types   [len(types)]int           // how many of them are of each type
	// of the snapshot being taken; nil without one, or if keys are younger than it
	walk *spaceWalk
}

func (sh *shard) init(e *Engine, index int) {
	sh.e = e
	sh.index = index
	sh.dbs = make([]space, e.databases)
	sh.counts.init(e.databases)
	sh.dice = e.hasher.Sum([]byte{byte(index), byte(index >> 8)})
}

// place is a key's hash as the shard's dict knows it: without the bits that chose the shard, which
// all its keys share.
func (e *Engine) place(hash uint64) uint64 { return hash << e.shardBits }

// continues notes that a log comes here that hits were given names in there.
func (sh *shard) continues(from *shard) { sh.seq.gave(from.seq.at, from.seq.free) }

func (sh *shard) find(db int, k Key) object.Object {
	keys := sh.dbs[db].keys
	if keys == nil {
		return nil
	}
	o, _ := keys.Find(sh.e.place(k.Hash), func(o object.Object) bool { return o.Head().Name == string(k.Name) })
	return o
}

// insert adds an object whose name the database lacks. Creation and a move to here are uses.
func (sh *shard) insert(db int, hash uint64, o object.Object) {
	o.Touch(sh.e.memory.stamp(sh, o, true))
	s := &sh.dbs[db]
	if s.keys == nil {
		s.keys = dict.New(
			func(o object.Object) uint64 { return sh.e.place(sh.e.hasher.Sum(object.BytesOf(o.Head().Name))) },
		)
	}
	s.keys.Insert(sh.e.place(hash), o)
	sh.counts.note(db)
	sh.countType(s, o, 1)
	if at := o.Head().ExpireAt; at != 0 {
		s.expires++
		s.keys.Mark(sh.e.place(hash), at)
	}
	sh.grow(db, object.Weigh(o))
}

func (sh *shard) remove(db int, hash uint64, o object.Object) {
	s := &sh.dbs[db]
	s.keys.Remove(sh.e.place(hash), func(x object.Object) bool { return x == o })
	sh.counts.note(db)
	sh.countType(s, o, -1)
	if o.Head().ExpireAt != 0 {
		s.expires--
	}
	sh.grow(db, -object.Weigh(o))
}

// flush empties a database.
func (sh *shard) flush(db int) {
	sh.grow(db, -sh.dbs[db].weight)
	for i, n := range sh.dbs[db].types {
		sh.types[i].Add(int64(-n))
	}
	sh.dbs[db] = space{}
	sh.counts.note(db)
}

// setDeadline changes when an object that is in the database expires.
func (sh *shard) setDeadline(db int, hash uint64, o object.Object, at int64) {
	s, h := &sh.dbs[db], o.Head()
	if (h.ExpireAt != 0) != (at != 0) {
		sh.counts.note(db)
	}
	if h.ExpireAt != 0 {
		s.expires--
	}
	h.ExpireAt = at
	if at != 0 {
		s.expires++
		s.keys.Mark(sh.e.place(hash), at)
	}
}

// types are all that a key can hold.
var types = [...]object.Type{
	object.TypeString,
	object.TypeHash,
	object.TypeZSet,
	object.TypeToken,
	object.TypeFixed,
	object.TypeCounter,
}

// countType counts n keys more of an object's type.
func (sh *shard) countType(s *space, o object.Object, n int) {
	i := slices.Index(types[:], o.Kind())
	s.types[i] += n
	sh.types[i].Add(int64(n))
}

// TypeCount says how many keys of all databases hold a type.
type TypeCount struct {
	Type object.Type
	Keys int64
}

// Types counts the keys of all databases by type, all types there are. Keys that have expired count
// until they are deleted. It takes no lock.
func (e *Engine) Types() []TypeCount {
	list := make([]TypeCount, len(types))
	for i := range list {
		list[i].Type = types[i]
		for j := range e.shards {
			list[i].Keys += e.shards[j].types[i].Load()
		}
	}
	return list
}

// counts are how many keys a shard has in each database, for readers that take no lock. A call
// brings them up to date at its end, so that they never show a part of it; where several shards
// have changed, readers notice that they are being brought up to date and look again.
type counts struct {
	keys, expires []atomic.Int64 // by database
	// the database whose counts are to be brought up to date, and one more; 0: none; manyDatabases:
	// any
	changed int
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

// Size is how many keys a database has and how many of them have a deadline. Keys that have expired
// count until they are deleted, as in Redis. It takes no lock: calls that have not ended do not
// count.
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

// Count is Engine.Size for a Tx that is idle or within BeginAll: then what the call has changed so
// far counts.
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

// denials counts how often the keys of a shard were denied, in a bounded place: those that were
// denied most, by the Space-Saving algorithm of Metwally, Agrawal and El Abbadi (Efficient
// Computation of Frequent and Top-k Elements in Data Streams, ICDT 2005).
//
// There are maxCounters counters. A key that has none takes over the smallest, and what that had
// counted is noted as its error, since as many of its denials may have gone by. So of N denials
//
//   - a key that was denied more than N/maxCounters times has a counter;
//   - count is too high by error at most, and error is N/maxCounters at most: count-error is never
//     too high.
//
// The counters are in order, the highest first: the key that is denied over and over is found at
// the first look. A counter that goes up changes places with the first of those that it was equal
// to.
type denials struct {
	// by counter, side by side, so that it takes a few cache lines to look through them
	keys     []hashed
	counters []counter
}

// hashed identifies a key: no client can find two names with one hash, see dict.Hasher.
type hashed struct {
	hash uint64
	db   int
}

type counter struct {
	count, error int64
	name         []byte
	rule         *rule.Rule // that denied last
	known        bool       // false: no rule of this server has decided
}

const (
	maxCounters = 64  // in a shard
	maxTopName  = 256 // bytes of a name that are kept
)

// add counts a denial by a rule, nil if it was decided without one.
func (d *denials) add(db int, k Key, by *rule.Rule) {
	i := slices.Index(d.keys, hashed{k.Hash, db})
	if i < 0 {
		i = d.take(db, k)
	}
	first, _ := slices.BinarySearchFunc(d.counters[:i], d.counters[i].count, func(c counter, count int64) int {
		return cmp.Compare(count, c.count)
	})
	d.keys[i], d.keys[first] = d.keys[first], d.keys[i]
	d.counters[i], d.counters[first] = d.counters[first], d.counters[i]
	c := &d.counters[first]
	c.count++
	if c.known = by != nil; c.known {
		*c.rule = *by
	}
}

// take gives a key a counter, the last.
func (d *denials) take(db int, k Key) (at int) {
	if len(d.counters) < maxCounters {
		d.keys, d.counters = append(d.keys, hashed{}), append(d.counters, counter{rule: new(rule.Rule)})
	}
	at = len(d.counters) - 1
	c := &d.counters[at]
	d.keys[at], c.error = hashed{k.Hash, db}, c.count
	c.name = append(c.name[:0], k.Name[:min(len(k.Name), maxTopName)]...)
	return at
}

// Denials says that a key of a database was denied at least so many times. A name that is longer
// than 256 bytes is cut.
type Denials struct {
	DB    int
	Name  []byte
	Count int64
	// Rule is the one that denied last; nil if no limiter has decided, as for INCREX.
	Rule *rule.Rule
}

// MostTop is how many keys Top can return at most; those it is sure to know are far fewer.
func (e *Engine) MostTop() int { return len(e.shards) * maxCounters }

// AllDatabases is what Top takes in place of the number of a database.
const AllDatabases = -1

// Top is the n keys of a database, or of all, that were denied most since the start, or since
// ResetStats, those denied most first. It counts in bounded memory: of the N denials of a shard's
// keys, a key that had more than N/64 is known, and its count too low by no more than that. It
// takes one shard's lock after the other, and what it returns is the caller's.
func (e *Engine) Top(db, n int) (top []Denials) {
	for i := range e.shards {
		sh := &e.shards[i]
		sh.mu.Lock()
		for j, c := range sh.denied.counters {
			if of := sh.denied.keys[j].db; of == db || db == AllDatabases {
				top = append(top, c.denials(of))
			}
		}
		sh.mu.Unlock()
	}
	slices.SortFunc(top, func(a, b Denials) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), bytes.Compare(a.Name, b.Name), cmp.Compare(a.DB, b.DB))
	})
	return top[:min(n, len(top))]
}

func (c *counter) denials(db int) Denials {
	d := Denials{DB: db, Name: bytes.Clone(c.name), Count: c.count - c.error}
	if c.known {
		by := *c.rule
		d.Rule = &by
	}
	return d
}

// DeniedBy is the rule that denied a key last, if the key is among those that Top can return; nil
// if it is not, or no limiter has decided. It takes the key's lock itself.
func (e *Engine) DeniedBy(db int, k Key) *rule.Rule {
	sh := e.shardOf(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if i := slices.Index(sh.denied.keys, hashed{k.Hash, db}); i >= 0 {
		return sh.denied.counters[i].denials(db).Rule
	}
	return nil
}
