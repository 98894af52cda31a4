package engine

import (
	"slices"
	"sync/atomic"

	"rlserver/engine/effect"
	"rlserver/engine/object"
)

// Watch observes changes to a few keys, for WATCH and for waiters. The zero value watches nothing.
// Except for Changed, it belongs to one goroutine. It must be unwatched in the end.
type Watch struct {
	// Then, if not nil, is called at the end of each call that changes the key, under its locks and
	// in the key's database, in the goroutine of that call. Changes by Then are part of the call. A
	// Watch with a Then watches one key.
	Then func(tx *Tx)

	keys    []underWatch
	size    int // bytes that watching takes
	changed atomic.Bool
	due     bool // the call that holds the key's lock will call Then
}

type underWatch struct {
	db  int
	key Key
	*watcher
}

// watcher is a Watch of a key, in the shard of that key, whose lock guards it.
type watcher struct {
	*Watch
	absent bool // the key was missing or expired when the watching began
	at     int  // index in the list of the key's watchers
}

// watchedKey is a key with its database: the key of a shard's map of watchers.
type watchedKey struct {
	db   int
	name string
}

// Changed reports whether any of the keys was changed since Watch, or deleted when it expired. A
// change that sets the same value counts.
func (w *Watch) Changed() bool { return w.changed.Load() }

// watchSize is the memory for watching a key in bytes, without two copies of its name: the entries
// in a Watch and in the map of its shard.
const watchSize = 256

// Size returns how many bytes watching takes, about.
func (w *Watch) Size() int { return w.size }

// Keys appends the watched keys to dst, for Begin.
func (w *Watch) Keys(dst []Key) []Key {
	for _, k := range w.keys {
		dst = append(dst, k.key)
	}
	return dst
}

// Watch begins to watch a key in the call's database. Watching it again does nothing. The name is
// copied.
func (tx *Tx) Watch(w *Watch, k Key) {
	sh, at := tx.e.shardOf(k), watchedKey{tx.db, string(k.Name)}
	others := sh.watches[at]
	isOwn := func(x *watcher) bool { return x.Watch == w }
	isSame := func(x underWatch) bool { return x.db == at.db && string(x.key.Name) == at.name }
	short := len(others) < len(w.keys) // search the shorter list
	if short && slices.ContainsFunc(others, isOwn) || !short && slices.ContainsFunc(w.keys, isSame) {
		return
	}
	k.Name = object.BytesOf(at.name)
	own := &watcher{w, tx.find(tx.db, k) == nil, len(others)}
	w.keys = append(w.keys, underWatch{tx.db, k, own})
	w.size += watchSize + 2*len(k.Name)
	if sh.watches == nil {
		sh.watches = make(map[watchedKey][]*watcher)
	}
	sh.watches[at] = append(others, own)
}

// Intact reports, for keys that Begin was given, whether none has changed or expired since Watch.
func (tx *Tx) Intact(w *Watch) bool {
	return !w.Changed() &&
		!slices.ContainsFunc(w.keys, func(x underWatch) bool { return !x.absent && tx.find(x.db, x.key) == nil })
}

// Unwatch ends the watching of keys that Begin was given.
func (tx *Tx) Unwatch(w *Watch) {
	for _, x := range w.keys {
		sh, at := tx.e.shardOf(x.key), watchedKey{x.db, string(x.key.Name)}
		list := sh.watches[at]
		last := len(list) - 1
		list[x.at], list[last].at = list[last], x.at
		if sh.watches[at] = slices.Delete(list, last, last+1); last == 0 {
			delete(sh.watches, at)
		}
	}
	w.keys, w.size = nil, 0
	w.changed.Store(false)
}

// notifyWatches notifies the watches of the keys that an effect is about to change. o is the object
// under its key.
func (tx *Tx) notifyWatches(o object.Object, f *effect.Effect) {
	switch {
	case f.Kind == effect.Flush || f.Kind == effect.Swap:
		for _, sh := range tx.locked {
			tx.notifyAll(sh, f)
		}
		return
	case !f.Kind.ChangesKey():
		return
	case f.Kind == effect.Delete && o.Expired(tx.now):
		tx.notifyKey(f.DB, f.Key, true)
		return
	case f.Kind.HasTo():
		tx.notifyKey(f.Target(), f.To, false)
	case f.Kind == effect.Move:
		tx.notifyKey(f.ToDB, f.Key, false)
	}
	if f.Kind != effect.Copy {
		tx.notifyKey(f.DB, f.Key, false)
	}
}

// notifyKey notifies the watches of a key. stale: an expired object is deleted, which does not
// notify a watch that began after it expired.
func (tx *Tx) notifyKey(db int, k Key, stale bool) {
	sh := tx.e.shardOf(k)
	if len(sh.watches) == 0 {
		return
	}
	for _, w := range sh.watches[watchedKey{db, string(k.Name)}] {
		if !stale || !w.absent {
			tx.notify(w.Watch)
		}
	}
}

func (tx *Tx) notify(w *Watch) {
	w.changed.Store(true)
	if w.Then != nil && !w.due {
		w.due = true
		tx.notified = append(tx.notified, w)
	}
}

// callThen calls the Then of each notified watch, in the order in which their keys were changed,
// and again if a Then changes one. It runs in the goroutine and under the locks of the call that
// made the change, which may be another client's.
func (tx *Tx) callThen() {
	for i := 0; i < len(tx.notified); i++ {
		w := tx.notified[i]
		w.due = false
		if len(w.keys) > 0 { // otherwise it was unwatched since
			tx.db, tx.writing = w.keys[0].db, true // regardless of the call, or the last of several
			w.Then(tx)
		}
	}
}

// notifyAll notifies the watches of keys of a database that is flushed or swapped, if the key
// exists before or after. Expired objects count as missing, except for watches that began before
// they expired.
func (tx *Tx) notifyAll(sh *shard, f *effect.Effect) {
	for at, watches := range sh.watches {
		other := at.db // the database whose keys replace these
		switch {
		case f.Kind == effect.Swap && at.db == f.DB:
			other = f.ToDB
		case f.Kind == effect.Swap && at.db == f.ToDB:
			other = f.DB
		case at.db != f.DB:
			continue
		}
		k := Key{Name: []byte(at.name), Hash: sh.e.hasher.Sum([]byte(at.name))}
		stale := sh.find(at.db, k) != nil
		changed := tx.find(at.db, k) != nil || tx.find(other, k) != nil
		for _, w := range watches {
			if changed || stale && !w.absent {
				tx.notify(w.Watch)
			}
		}
	}
}
