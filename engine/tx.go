package engine

import (
	"fmt"
	"slices"

	"rlserver/engine/change"
	"rlserver/engine/effect"
	"rlserver/engine/hits"
	"rlserver/engine/limit"
	"rlserver/engine/lock"
	"rlserver/engine/object"
	"rlserver/engine/reserve"
	"rlserver/engine/rule"
	"rlserver/engine/table"
	"rlserver/zset"
)

// Tx is one call's exclusive access to the shards of its keys, at one point in time. A connection
// creates one and uses it for every call:
//
//	tx.Begin(now, db, keys, writing)   locks
//	tx.Set(…)                          reads and changes, any number of times
//	pos := tx.End()                    journals the effects, unlocks; the reply waits for pos
//
// Several calls may run one after the other under one hold of the locks: Join adds the keys of
// another call before the first one runs, and Next begins it.
//
// Its methods take only keys that Begin or Join was given. Their results may point into the
// keyspace and are valid until the next change or End, whichever is first. An operation that
// returns an error has changed nothing.
type Tx struct {
	e       *Engine
	db      int
	now     int64
	writing bool
	locked  []*shard // first those of Begin, in the order of their index, then those of Join
	effects []byte   // the changes as effect.Append writes them, if there is a journal
	changed int64    // the number of changed members, fields and keys
	applied uint64   // the number of changes ever made

	keys  []Key                     // those that Begin was given
	whole bool                      // it may use all keys of the shards
	kept  lock.Kept[*shard, moment] // see Hold

	// the latest change that the call has seen in earlier steps, or without locks
	seen Position

	// scratch
	log    hits.Log       // of the sliding windows
	few    zset.Borrowed  // the hits of log, if it is a record
	parts  []part         // of Decide and All
	limits []Limit        // of All
	rules  []limit.Window // of All
	budget int            // of All: how many hits in the future may still be skipped
	check  check          // of Check
	view   view           // of limits with reservations
	terms  []rule.Rule    // of agree

	settled []reserve.Settled // of Settle

	packed []byte // the elements of Insert, the text of terms

	fetched int // a sum that makes the reads of Prefetch count as used

	dryRun  bool // in DryRun
	noTouch bool // in NoTouch

	// Listener gets the changes of the calls; nil: see Memory.Listen
	Listener Listener
	told     []change.Change
	named    int // the first ones of told that have events

	notified []*Watch         // whose Then is called at the end
	after    []func(Position) // what Afterwards was given
}

// NewTx returns a Tx, for use by one goroutine.
func (e *Engine) NewTx() *Tx { return &Tx{e: e} }

// NoTouch calls run. If on is true, lookups meanwhile, except Touch, leave the access clocks as
// they are: CLIENT NO-TOUCH. The mode ends with run, even if that panics.
func (tx *Tx) NoTouch(on bool, run func()) {
	before := tx.noTouch
	tx.noTouch = on
	defer func() { tx.noTouch = before }()
	run()
}

// DryRun calls run. Limiters meanwhile decide as usual but change nothing, and their denials are
// not counted; expired keys stay. The mode ends with run, even if that panics.
func (tx *Tx) DryRun(run func()) {
	before := tx.dryRun
	tx.dryRun = true
	defer func() { tx.dryRun = before }()
	run()
}

// Begin locks the shards of the keys, for a call at now (Unix ms) on a database that exists.
// A call that is not writing may change nothing, but expired keys that it meets are deleted.
func (tx *Tx) Begin(now int64, db int, keys []Key, writing bool) {
	tx.want(keys)
	tx.begin(now, db, writing, true)
}

// BeginUnlessHeld is Begin, or BeginAll, but reports false if a script holds one of the keys for
// too long, see Late. Then nothing has begun.
func (tx *Tx) BeginUnlessHeld(now int64, db int, keys []Key, all, writing bool) (ok bool) {
	if all {
		tx.wantAll()
	} else {
		tx.want(keys)
	}
	return tx.begin(now, db, writing, false)
}

// Later calls do under the locks of keys in the background, when no script holds them any more. It
// is for what BeginUnlessHeld could not begin.
func (e *Engine) Later(now int64, db int, keys []Key, writing bool, do func(*Tx)) {
	go func() {
		tx := e.NewTx()
		tx.Begin(now, db, keys, writing)
		do(tx)
		tx.End()
	}()
}

// want lists the shards of keys in the order of their index.
func (tx *Tx) want(keys []Key) {
	tx.keys = keys
	if len(keys) == 1 { // nearly all calls
		tx.locked = append(tx.locked, tx.e.shardOf(keys[0]))
		return
	}
	for i := range keys {
		if sh := tx.e.shardOf(keys[i]); !slices.Contains(tx.locked, sh) {
			tx.locked = append(tx.locked, sh)
		}
	}
	if len(tx.locked) > 1 {
		slices.SortFunc(tx.locked, func(a, b *shard) int { return a.index - b.index })
	}
}

// Join locks the shards of the keys of another call if they are free, and no script holds one of
// the keys: waiting for a lock out of order could deadlock. It reports whether the call may run
// under the same hold. No call of the hold has read anything yet.
func (tx *Tx) Join(keys []Key) bool {
	for i := range keys {
		sh := tx.e.shardOf(keys[i])
		free := sh.mu.TryLock()
		if !free && !slices.Contains(tx.locked, sh) {
			return false
		}
		if !tx.e.Holds.Empty() && tx.e.Holds.Of(keys[i].Hash) != tx.kept.Call {
			if free {
				sh.mu.Unlock()
			}
			return false
		}
		if !free {
			continue
		}
		tx.locked = append(tx.locked, sh)
		if sh.now > tx.now {
			tx.setTime(sh.now)
		}
		sh.now, sh.owner = tx.now, tx
	}
	return true
}

// Next begins the next of several calls under one hold, on a database that exists.
func (tx *Tx) Next(db int, writing bool) { tx.db, tx.writing = db, writing }

// Due reports whether no further call should run under the same hold: watchers wait for its end,
// see Watch.Then, or it has changed so much that other calls would wait for long, and MakeRoom
// should run first.
func (tx *Tx) Due() bool { return len(tx.notified) > 0 || tx.changed > manyChanges }

// BeginAll is Begin for a call on the whole keyspace.
func (tx *Tx) BeginAll(now int64, db int, writing bool) {
	tx.wantAll()
	tx.begin(now, db, writing, true)
}

func (tx *Tx) wantAll() {
	tx.whole = true
	for i := range tx.e.shards {
		tx.locked = append(tx.locked, &tx.e.shards[i])
	}
}

// begin takes the locks and sets the time to now, or to the latest time that any of the shards has
// seen if that is later: callers read the clock before they hold the locks.
func (tx *Tx) begin(now int64, db int, writing, patient bool) (ok bool) {
	tx.db, tx.writing, tx.changed = db, writing, 0
	if !tx.lock(patient) {
		clear(tx.locked)
		tx.locked, tx.keys, tx.whole = tx.locked[:0], nil, false
		return false
	}
	tx.startAt(now)
	return true
}

// startAt sets the time, see begin.
func (tx *Tx) startAt(now int64) {
	for _, sh := range tx.locked {
		now = max(now, sh.now)
	}
	tx.setTime(now)
}

// setTime makes now the time of all locked shards.
func (tx *Tx) setTime(now int64) {
	tx.now = now
	for _, sh := range tx.locked {
		sh.now, sh.owner = now, tx
	}
}

// manyChanges is how much a hold changes before it is due: members, fields and keys.
const manyChanges = 256

const (
	keptEffects = 4 << 10 // the largest capacity, in bytes, that a Tx keeps between calls
	keptParts   = 8       // and for parts
)

// End passes the changes to the journal and unlocks the shards. It returns the position that the
// journal must reach before the reply is sent: the latest change, by any call, to the shards that
// the call held, because neither a read nor a denial may report a change that could be lost. It is
// 0 if there was no change.
func (tx *Tx) End() (pos Position) {
	defer tx.unlock()
	if len(tx.notified) > 0 {
		tx.callThen()
	}
	if len(tx.effects) > 0 {
		tx.commit()
	}
	pos = tx.latest()
	if len(tx.told) > 0 {
		tx.tell(pos)
	}
	for _, do := range tx.after {
		do(pos)
	}
	return pos
}

// commit passes the changes so far to the journal, as End does. A call that changes much does so in
// between.
func (tx *Tx) commit() {
	if len(tx.effects) == 0 {
		return
	}
	pos := tx.e.journal.Append(tx.now, tx.effects)
	for _, sh := range tx.locked {
		sh.position.Store(uint64(pos))
	}
	tx.effects = tx.effects[:0]
}

// latest returns the position of the latest change that the call has seen.
func (tx *Tx) latest() Position {
	pos := uint64(tx.seen)
	for _, sh := range tx.locked {
		pos = max(pos, sh.position.Load())
	}
	tx.seen = 0
	return Position(pos)
}

// endStep is End for one of the steps of a call: the End of the call returns the latest position
// that any of them has seen.
func (tx *Tx) endStep() { tx.seen = tx.End() }

// Step calls do under the locks of keys, as a step of a call that has locked nothing or everything.
// It reports false as BeginUnlessHeld does.
func (tx *Tx) Step(now int64, db int, keys []Key, do func()) (ok bool) {
	if len(tx.locked) == 0 {
		if !tx.BeginUnlessHeld(now, db, keys, false, false) {
			return false
		}
		defer tx.endStep()
	}
	do()
	return true
}

// See makes End return at least this position.
func (tx *Tx) See(pos Position) { tx.seen = max(tx.seen, pos) }

// SeeAll makes End return a position that covers all changes that the call may have seen without
// locks.
func (tx *Tx) SeeAll() {
	for i := range tx.e.shards {
		tx.seen = max(tx.seen, Position(tx.e.shards[i].position.Load()))
	}
}

// Afterwards registers do, which is called at the end of the call, still under its locks, with the
// call's position in the journal.
func (tx *Tx) Afterwards(do func(Position)) { tx.after = append(tx.after, do) }

// unlock unlocks the shards and drops references to objects: the Tx of an idle connection keeps
// nothing alive.
func (tx *Tx) unlock() {
	if cap(tx.effects) > keptEffects {
		tx.effects = nil
	}
	tx.log.Drop()
	tx.few.Drop()
	tx.dropParts()
	if cap(tx.parts) > keptParts {
		tx.parts, tx.rules, tx.settled, tx.terms = nil, nil, nil, nil
	}
	if len(tx.notified) > 0 || len(tx.after) > 0 { // clearing them costs a write barrier
		tx.notified, tx.after = nil, nil
	}
	if tx.check.all != nil {
		tx.check.reset()
		tx.check.all = nil
	}
	tx.recount()
	if tx.kept.Moments != nil {
		tx.rejoin()
	}
	for i, sh := range tx.locked {
		sh.owner = nil
		sh.mu.Unlock()
		tx.locked[i] = nil // one at a time: clear takes longer for the few that there are
	}
	tx.locked, tx.keys, tx.whole = tx.locked[:0], nil, false
}

// Now returns the time of the call, Unix ms: the time that Begin was given, or a later one that its
// shards have already seen.
func (tx *Tx) Now() int64 { return tx.now }

// Pending returns how many bytes of changes the journal gets when the call ends.
func (tx *Tx) Pending() int64 { return int64(len(tx.effects)) }

// Applied returns the number of changes that have been made with this Tx.
func (tx *Tx) Applied() uint64 { return tx.applied }

// lookup returns the object under a key, and updates its access clock; nil if the key is missing or
// has expired.
func (tx *Tx) lookup(k Key) object.Object {
	o := tx.lookupPacked(k)
	if _, packed := o.(*object.Log); packed {
		o = tx.e.unpacked(tx.db, k, o)
	}
	return o
}

// lookupFor is lookup for the object of a limit.
func (tx *Tx) lookupFor(a *algorithm, k Key) object.Object {
	if a.id == namesHits {
		return tx.lookupPacked(k)
	}
	return tx.lookup(k)
}

// lookupPacked is lookup without unpacking a log that is a record.
func (tx *Tx) lookupPacked(k Key) object.Object {
	o := tx.peek(k)
	if o != nil && !tx.noTouch {
		o.Touch(tx.e.memory.stamp(tx.e.shardOf(k), o, false))
	}
	return o
}

// peek is lookup without an access.
func (tx *Tx) peek(k Key) object.Object {
	o := tx.find(tx.db, k)
	if !tx.writing {
		tx.e.shardOf(k).stats.Count(o != nil)
	}
	if o == nil {
		tx.miss(k)
	}
	return o
}

// find returns the object under a key of any database; nil if the key is missing or has expired.
// It panics if the call has not locked the key's shard, or a script holds the key: all lookups pass
// here, so that a command whose declaration lacks a key fails its first test, and never races.
func (tx *Tx) find(db int, k Key) object.Object {
	sh := tx.e.shardOf(k)
	if sh.owner != tx || !tx.e.Holds.Empty() && tx.e.Holds.Of(k.Hash) != tx.kept.Call {
		panic(fmt.Sprintf("engine: a call uses the key %.64q, which it has not locked", k.Name))
	}
	o := sh.find(db, k)
	if o != nil && o.Expired(tx.now) {
		tx.lapse(db, k, o)
		return nil
	}
	return o
}

// lapse deletes an expired object that a call has met, as in Redis also one that only reads. Like
// the background work it leaves the object while changes are refused, and to the leader. It is no
// change of the call's own: Applied does not count it.
func (tx *Tx) lapse(db int, k Key, o object.Object) {
	if refused := tx.e.refused.Load(); refused != nil && (*refused)() == nil && !tx.dryRun {
		tx.e.shardOf(k).stats.Expired.Add(1)
		tx.record(o, &effect.Effect{Kind: effect.Delete, DB: db, Key: k})
	}
}

// apply makes a change and records its effect. o is the object that lookup found under the effect's
// key; the object there afterwards is returned.
func (tx *Tx) apply(o object.Object, f *effect.Effect) object.Object {
	if tx.dryRun {
		return o
	}
	f.DB = tx.db
	if o == nil && f.Kind.ChangesKey() {
		tx.deleteExpired(f.DB, f.Key)
	}
	return tx.perform(o, f)
}

// deleteExpired deletes the expired object under a key that lookup reported as missing, if lapse
// has not. It is an effect of its own, so that replay needs no clock.
func (tx *Tx) deleteExpired(db int, k Key) {
	sh := tx.e.shardOf(k)
	if late := sh.find(db, k); late != nil {
		sh.stats.Expired.Add(1)
		tx.perform(late, &effect.Effect{Kind: effect.Delete, DB: db, Key: k})
	}
}

// perform is apply for an effect whose database is set. The effect is encoded at once, because what
// it points to may change after that: keys, replies and requests. If the engine panics because the
// effect does not fit, nothing is recorded.
func (tx *Tx) perform(o object.Object, f *effect.Effect) object.Object {
	if !tx.writing {
		panic("engine: a call that began as read-only tries to change something")
	}
	tx.applied++
	return tx.record(o, f)
}

func (tx *Tx) record(o object.Object, f *effect.Effect) (after object.Object) {
	tx.notifyWatches(o, f)
	tx.locked[0].changes.Add(1)
	tx.changed += f.Size()
	if tx.e.journal == nil {
		after = tx.e.apply(o, f)
	} else {
		recorded := effect.Append(tx.effects, f)
		after = tx.e.apply(o, f)
		tx.effects = recorded
	}
	if tx.listening() {
		tx.listen(o, after, f)
	}
	return after
}

// delete deletes a key.
func (tx *Tx) delete(k Key, o object.Object) {
	tx.apply(o, &effect.Effect{Kind: effect.Delete, Key: k})
}

// MaxPrefetched is how many keys Prefetch loads at most, the first ones. More would leave the
// cache before the calls use them.
const MaxPrefetched = 16

// Prefetch loads the objects of keys that Begin or Join was given into the CPU's caches, all at
// once: otherwise the calls would wait for each in turn. With a single key, however often, it does
// nothing. See table.Prefetch.
func (tx *Tx) Prefetch(keys []Key) {
	if len(keys) < 2 {
		return
	}
	var places [MaxPrefetched]table.Place
	found := places[:0]
	for i := range keys[:min(len(keys), len(places))] {
		again := i > 0 && keys[i].Hash == keys[i-1].Hash
		if t := tx.e.shardOf(keys[i]).dbs[tx.db].keys; t != nil && !again {
			found = append(found, table.Place{Table: t, Hash: tx.e.place(keys[i].Hash)})
		}
	}
	tx.fetched += table.Prefetch(found)
}
