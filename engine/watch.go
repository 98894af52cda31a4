package engine

import (
	"sync/atomic"

	"rlserver/engine/change"
	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/engine/watches"
)

// Watch observes changes to a few keys.
type Watch = watches.Watch[*Tx]

// Watch begins to watch a key in the call's database. Watching it again does nothing. The name is
// copied.
func (tx *Tx) Watch(w *Watch, k Key) {
	w.Add(&tx.e.shardOf(k).watches, tx.db, k, tx.find(tx.db, k) == nil)
}

// Intact reports, for keys that Begin was given, whether none has changed or expired since Watch.
func (tx *Tx) Intact(w *Watch) bool {
	return !w.Changed() && !w.Expired(func(db int, k Key) bool { return tx.find(db, k) == nil })
}

// Unwatch ends the watching of keys that Begin was given.
func (tx *Tx) Unwatch(w *Watch) {
	w.End(func(k Key) watches.Watchers[*Tx] { return tx.e.shardOf(k).watches })
}

// notifyWatches notifies the watches of the keys that an effect is about to change. o is the object
// under its key.
func (tx *Tx) notifyWatches(o object.Object, f *effect.Effect) {
	switch {
	case f.Kind.ChangesOnlyKey() && len(tx.e.shardOf(f.Key).watches) == 0: // nearly all calls
		return
	case f.Kind == effect.Flush || f.Kind == effect.Swap:
		for _, sh := range tx.locked {
			tx.notifyAll(sh, f)
		}
		return
	case !f.Kind.ChangesKey():
		return
	case f.Kind == effect.Delete && o.Expired(tx.now):
		tx.notifyKey(f.DB, f.Key, true, false)
		return
	case f.Kind.HasTo():
		tx.notifyKey(f.Target(), f.To, false, true)
	case f.Kind == effect.Move:
		tx.notifyKey(f.ToDB, f.Key, false, true)
	}
	if f.Kind != effect.Copy {
		tx.notifyKey(f.DB, f.Key, false, o == nil)
	}
}

// notifyKey notifies the watches of a key. See watches.Notify.
func (tx *Tx) notifyKey(db int, k Key, stale, created bool) {
	if sh := tx.e.shardOf(k); len(sh.watches) > 0 {
		tx.notified = sh.watches.Notify(db, k.Name, stale, created, tx.notified)
	}
}

// callThen calls the Then of each notified watch, and again if a Then changes the key: in the order
// in which the keys were created or, if they were not, changed. It runs in the goroutine and under
// the locks of the call that made the change, which may be another client's.
func (tx *Tx) callThen() {
	for i := 0; i < len(tx.notified); i++ {
		tx.notified[i].Call(tx, func(db int) {
			tx.db, tx.writing = db, true // regardless of the call, or the last of several
		})
	}
}

// notifyAll notifies the watches of keys of a database that is flushed or swapped, if the key
// exists before or after. Expired objects count as missing, except for watches that began before
// they expired.
func (tx *Tx) notifyAll(sh *shard, f *effect.Effect) {
	for at := range sh.watches {
		other := at.DB // the database whose keys replace these
		switch {
		case f.Kind == effect.Swap && at.DB == f.DB:
			other = f.ToDB
		case f.Kind == effect.Swap && at.DB == f.ToDB:
			other = f.DB
		case at.DB != f.DB:
			continue
		}
		k := sh.e.Key([]byte(at.Name))
		stale := sh.find(at.DB, k) != nil
		changed := tx.find(at.DB, k) != nil || tx.find(other, k) != nil
		if changed || stale {
			tx.notified = sh.watches.Notify(at.DB, k.Name, !changed, false, tx.notified)
		}
	}
}

// Listening is what engines that share a memory tell of changes to keys. Nothing is told of changes
// that Apply makes: they have happened elsewhere.
type Listening struct {
	on     atomic.Bool // tell of changes
	misses atomic.Bool // and of keys that a call that reads has not found

	hear func(*Engine, Changes, Position)
}

// Changes are those of a call, or a part of them, in order.
type Changes struct {
	Named []change.Change // have got their events from Tx.Name
	Rest  []change.Change // have none so far
}

// Listener gets the changes of the calls of a Tx, while changes are told.
type Listener interface {
	// Hear is called under the locks of a call, at its end and when it has made many changes.
	Hear(Changes)
}

// Listen has the changes that a Tx without a Listener makes passed to hear, under the locks of the
// call, with the position that the journal must reach before they are kept. It is called once,
// before the first call.
func (m *Memory) Listen(hear func(*Engine, Changes, Position)) { m.listening.hear = hear }

// Tell sets whether changes are told, and whether misses are as well. Calls that begin later tell.
func (m *Memory) Tell(changes, misses bool) {
	m.listening.on.Store(changes || misses)
	m.listening.misses.Store(misses)
}

// Wait returns when the journal has reached a position, or an error if it will not.
func (e *Engine) Wait(at Position) error {
	if e.journal == nil || at == 0 {
		return nil
	}
	return e.journal.Wait(at)
}

// manyTold is from how many changes on a call tells what it has done so far.
const manyTold = 1024

// Name has the changes that have no event get them: name returns what takes their place. It is
// called after each of the calls of a Tx that leaves something Unnamed.
func (tx *Tx) Name(name func([]change.Change) []change.Change) {
	tx.told = append(tx.told[:tx.named], name(tx.told[tx.named:])...)
	// without a Listener, who hears needs the position
	if tx.named = len(tx.told); tx.named >= manyTold && tx.Listener != nil {
		tx.tell(0)
	}
}

// Unnamed reports whether there is something to Name. It is cheap.
func (tx *Tx) Unnamed() bool { return len(tx.told) > tx.named }

// Tell tells of the changes so far that have events, before the call ends.
func (tx *Tx) Tell() {
	if tx.named > 0 {
		tx.tell(0)
	}
}

// tell passes the changes so far to who listens.
func (tx *Tx) tell(at Position) {
	list := Changes{tx.told[:tx.named], tx.told[tx.named:]}
	tx.told, tx.named = nil, 0
	if tx.Listener != nil {
		tx.Listener.Hear(list)
	} else if hear := tx.e.memory.listening.hear; hear != nil {
		hear(tx.e, list, at)
	}
}

// listen adds an effect to what is told. o is the object under its key before, and after
// afterwards.
func (tx *Tx) listen(o, after object.Object, f *effect.Effect) {
	if !f.Kind.ChangesKey() && f.Kind != effect.Flush && f.Kind != effect.Swap {
		return
	}
	c := change.Change{
		Kind: f.Kind, DB: f.DB, ToDB: f.ToDB, Key: string(f.Key.Name), To: string(f.To.Name),
		Created: o == nil, Gone: after == nil,
	}
	if after != nil {
		c.ExpireAt = after.Deadline()
	}
	if f.Kind == effect.Delete {
		if o.Expired(tx.now) {
			c.Reason = change.Expired
		} else if tx.e.shardOf(f.Key).evicting {
			c.Reason = change.Evicted
		}
	}
	tx.told = change.Append(tx.told, c)
}

// listening reports whether changes are told.
func (tx *Tx) listening() bool { return tx.e.memory.listening.on.Load() }

// Rewrote tells of a call that has changed nothing, because the key has held already what an effect
// of a kind would have stored: Redis has an event of it, and WATCH notices it.
func (tx *Tx) Rewrote(k Key, kind effect.Kind) {
	if tx.dryRun {
		return
	}
	if tx.notifyKey(tx.db, k, false, false); tx.listening() {
		o := tx.find(tx.db, k)
		tx.listen(o, o, &effect.Effect{Kind: kind, DB: tx.db, Key: k})
	}
}

// miss tells of a call that has not found a key.
func (tx *Tx) miss(k Key) {
	if tx.e.memory.listening.misses.Load() {
		tx.told = append(tx.told, change.Change{
			Reason: change.Missed, DB: tx.db, Key: string(k.Name), Writing: tx.writing,
		})
	}
}
