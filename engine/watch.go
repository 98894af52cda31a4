package engine

import (
	"slices"
	"sync/atomic"

	"rlserver/engine/effect"
	"rlserver/engine/object"
)

// Watch notices changes to a few keys: those under which a client means to decide what it does
// next. The zero value watches nothing. It belongs to one goroutine, but for Changed, and has to be
// unwatched in the end.
type Watch struct {
	// Then, if not nil, is called at the end of each call that changes the key, under its locks and
	// in the key's database, whatever goroutine makes it. What Then changes is part of that call. A
	// Watch with it watches one key.
	Then func(tx *Tx)

	keys    []underWatch
	size    int // bytes that watching takes
	changed atomic.Bool
	due     bool // the call that holds the key's lock will call Then
}

type underWatch struct {
	db     int
	key    Key
	absent bool // there was nothing to be seen under it when the watching began
}

// watcher is a Watch of a key, in the shard of that key.
type watcher struct {
	*Watch
	absent bool
}

// watchedKey is a key with its database, for the map in which a shard finds its watchers.
type watchedKey struct {
	db   int
	name string
}

// Changed reports whether any of the keys has been changed since it is watched, or deleted when its
// time came. A change that leaves things as they were counts.
func (w *Watch) Changed() bool { return w.changed.Load() }

// watchSize is what watching a key takes beside two copies of its name: its places in a Watch and
// in the map of its shard.
const watchSize = 256

// Size is how many bytes watching takes, about.
func (w *Watch) Size() int { return w.size }

// Keys are what is watched, to be given to Begin.
func (w *Watch) Keys(dst []Key) []Key {
	for _, k := range w.keys {
		dst = append(dst, k.key)
	}
	return dst
}

// Watch begins to watch a key in the call's database. To watch it twice is to watch it once. The
// name is copied.
func (tx *Tx) Watch(w *Watch, k Key) {
	sh, at := tx.e.shardOf(k), watchedKey{tx.db, string(k.Name)}
	if slices.ContainsFunc(sh.watches[at], func(other watcher) bool { return other.Watch == w }) {
		return
	}
	k.Name = slices.Clone(k.Name)
	absent := tx.find(tx.db, k) == nil
	w.keys = append(w.keys, underWatch{tx.db, k, absent})
	w.size += watchSize + 2*len(k.Name)
	if sh.watches == nil {
		sh.watches = make(map[watchedKey][]watcher)
	}
	sh.watches[at] = append(sh.watches[at], watcher{w, absent})
}

// Intact reports, for keys that Begin was given, whether none has changed and none has expired
// since it is watched.
func (tx *Tx) Intact(w *Watch) bool {
	return !w.Changed() &&
		!slices.ContainsFunc(w.keys, func(x underWatch) bool { return !x.absent && tx.find(x.db, x.key) == nil })
}

// Unwatch ends the watching of keys that Begin was given.
func (tx *Tx) Unwatch(w *Watch) {
	for _, x := range w.keys {
		sh, at := tx.e.shardOf(x.key), watchedKey{x.db, string(x.key.Name)}
		if rest := slices.DeleteFunc(sh.watches[at], func(other watcher) bool { return other.Watch == w }); len(
			rest,
		) > 0 {
			sh.watches[at] = rest
		} else {
			delete(sh.watches, at)
		}
	}
	w.keys, w.size = nil, 0
	w.changed.Store(false)
}

// notifyWatches notifies the watches of what an effect is about to change. o is what its key holds.
func (tx *Tx) notifyWatches(o object.Object, f *effect.Effect) {
	switch {
	case f.Kind == effect.Flush || f.Kind == effect.Swap:
		for _, sh := range tx.locked {
			tx.notifyAll(sh, f)
		}
		return
	case !f.Kind.ChangesKey():
		return
	case f.Kind == effect.Delete && o.Head().Expired(tx.now):
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

// notifyKey notifies the watches of a key. The deletion of an expired object does not concern a
// watch that began when it had expired.
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

// callThen calls the Then of each notified watch: in the order in which their keys were changed,
// and again if that changes one. It runs in the goroutine and under the locks of the call that made
// the change, which may be another client's.
func (tx *Tx) callThen() {
	for i := 0; i < len(tx.notified); i++ {
		w := tx.notified[i]
		w.due = false
		if len(w.keys) > 0 { // else it was unwatched since
			tx.db, tx.writing = w.keys[0].db, true // whatever the call was, or the last of several
			w.Then(tx)
		}
	}
}

// notifyAll notifies the watches of keys of a database that is emptied or changes places with
// another, if there is something under the key before or after. Expired objects count as missing,
// except for watches that began before they expired.
func (tx *Tx) notifyAll(sh *shard, f *effect.Effect) {
	for at, watches := range sh.watches {
		other := at.db // whose keys take the place of these
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
