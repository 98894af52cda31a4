// Package watches knows who watches which keys for changes.
package watches

import (
	"slices"
	"sync/atomic"

	"rlserver/engine/effect"
	"rlserver/engine/object"
)

// Watch observes changes to a few keys, for WATCH and for waiters. The zero value watches nothing.
// Except for Changed, it belongs to one goroutine. It must be unwatched in the end. C is a call
// that changes keys.
type Watch[C any] struct {
	// Then, if not nil, is called at the end of each call that changes the key, under its locks and
	// in the key's database, in the goroutine of that call. Changes by Then are part of the call. A
	// Watch with a Then watches one key.
	Then func(C)

	keys    []underWatch[C]
	size    int // bytes that watching takes
	changed atomic.Bool
	due     int  // 1 + the index in the call's list of those whose Then it will call; 0: not there
	created bool // the call has also created the key
}

type underWatch[C any] struct {
	db  int
	key effect.Key
	*watcher[C]
}

// watcher is a Watch of a key, in the shard of that key, whose lock guards it.
type watcher[C any] struct {
	*Watch[C]
	absent bool // the key was missing or expired when the watching began
	at     int  // index in the list of the key's watchers
}

// Place is a key with its database.
type Place struct {
	DB   int
	Name string
}

// Watchers are those of the keys of a shard; nil: none.
type Watchers[C any] map[Place][]*watcher[C]

// Changed reports whether any of the keys was changed since Watch, or deleted when it expired. A
// change that sets the same value counts.
func (w *Watch[C]) Changed() bool { return w.changed.Load() }

// watchSize is the memory for watching a key in bytes, without two copies of its name: the entries
// in a Watch and in the map of its shard.
const watchSize = 256

// Size returns how many bytes watching takes, about.
func (w *Watch[C]) Size() int { return w.size }

// Keys appends the watched keys to dst, for Begin.
func (w *Watch[C]) Keys(dst []effect.Key) []effect.Key {
	for _, k := range w.keys {
		dst = append(dst, k.key)
	}
	return dst
}

// Add begins to watch a key of a shard; absent: it is missing or expired. Watching it again does
// nothing. The name is copied.
func (w *Watch[C]) Add(in *Watchers[C], db int, k effect.Key, absent bool) {
	at := Place{db, string(k.Name)}
	others := (*in)[at]
	isOwn := func(x *watcher[C]) bool { return x.Watch == w }
	isSame := func(x underWatch[C]) bool { return x.db == at.DB && string(x.key.Name) == at.Name }
	short := len(others) < len(w.keys) // search the shorter list
	if short && slices.ContainsFunc(others, isOwn) || !short && slices.ContainsFunc(w.keys, isSame) {
		return
	}
	k.Name = object.BytesOf(at.Name)
	own := &watcher[C]{w, absent, len(others)}
	w.keys = append(w.keys, underWatch[C]{db, k, own})
	w.size += watchSize + 2*len(k.Name)
	if *in == nil {
		*in = make(Watchers[C])
	}
	(*in)[at] = append(others, own)
}

// Expired reports whether a key has expired since Add, which missing reports for those there were.
func (w *Watch[C]) Expired(missing func(db int, k effect.Key) bool) bool {
	return slices.ContainsFunc(w.keys, func(x underWatch[C]) bool { return !x.absent && missing(x.db, x.key) })
}

// End ends the watching of all keys, whose shards' locks are held.
func (w *Watch[C]) End(of func(effect.Key) Watchers[C]) {
	for _, x := range w.keys {
		all, at := of(x.key), Place{x.db, string(x.key.Name)}
		list := all[at]
		last := len(list) - 1
		list[x.at], list[last].at = list[last], x.at
		if all[at] = slices.Delete(list, last, last+1); last == 0 {
			delete(all, at)
		}
	}
	w.keys, w.size = nil, 0
	w.changed.Store(false)
}

// Notify notifies the watches of a key, and returns due with those whose Then is to be called.
// stale: an expired object is deleted, which does not notify a watch that began after it expired.
// created: the key has been missing. Watches are due in the order in which their keys are created,
// as in Redis: what waits for a key waits for its elements, and a call may delete the key first.
func (all Watchers[C]) Notify(
	db int, name []byte, stale, created bool, due []*Watch[C],
) []*Watch[C] {
	for _, w := range all[Place{db, string(name)}] {
		if stale && w.absent {
			continue
		}
		w.changed.Store(true)
		if w.Then == nil || w.due > 0 && (w.created || !created) {
			continue
		}
		if w.due > 0 {
			due[w.due-1] = nil
		}
		due = append(due, w.Watch)
		w.due, w.created = len(due), created
	}
	return due
}

// Call calls Then of a watch that Notify returned, unless it has ended since or is due later.
// before gets the key's database.
func (w *Watch[C]) Call(by C, before func(db int)) {
	if w == nil {
		return
	}
	w.due, w.created = 0, false
	if len(w.keys) > 0 {
		before(w.keys[0].db)
		w.Then(by)
	}
}
