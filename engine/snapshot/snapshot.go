// Package snapshot visits all policies and keys as they were at one point in time, in steps while
// calls continue.
//
// It walks through each table of that time in the order of hashes, and is called before each
// change. If a key is changed that the walk has not reached, its value is saved first and its hash
// noted, so that the walk skips it, see dict.Passage. Splits and merges of buckets move no key
// across the cursor. FLUSHDB and SWAPDB change no object: the walk continues over the table that it
// began with. Small objects are encoded as effects under their shard's lock, some 64 keys at a
// time. A large sorted set is cloned, a long string is shared until it is overwritten, and a large
// hash gets a walk of the same kind through its fields: they are encoded later, under no lock.
package snapshot

import (
	"cmp"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/engine/table"
	"rlserver/internal/dict"
)

// Snapshot is the whole keyspace at one point in time, visited in steps while calls continue. It
// must be closed. Except for Keys and Omitted, it is for use by one goroutine.
//
// Each key is visited once, as it was.
//
// Besides the keyspace it takes memory for the values that changes have saved since the last Step:
// in all Steps together at most one copy of each small object and a part of each large one. It also
// takes some 16 bytes for each key that exists and was changed or created ahead of the walk, until
// the walk has finished its shard.
type Snapshot struct {
	at  int64        // the time of the snapshot, Unix ms
	end func(func()) // nil: it is closed

	first []effect.Effect              // visited first
	next  func() (effect.Effect, bool) // and then these; nil: no more
	stop  func()
	walks []*Walk         // those that are not finished
	large []*object.Large // objects from walks and changes, visited in parts
	own   *object.Batch   // the objects that this Step visits

	total   int64
	done    atomic.Int64
	omitted atomic.Bool // a key was evicted before its turn

	// locked by changes, under the lock of a shard, and by Step, under no other
	mu    sync.Mutex
	kept  []*object.Batch // objects saved by changes; the last batch is being filled
	spare *object.Batch
}

// Walk is the walk through one database's keys in one shard. It stays with the table of the moment,
// even if SWAPDB moves it or FLUSHDB drops it from the keyspace. The shard's lock guards it.
type Walk struct {
	dict.Passage
	lock *sync.Mutex
	db   int                 // at the time of the snapshot
	keys *table.Table        // nil at the end
	save func(object.Object) // before its change
}

// New begins a snapshot at a time, Unix ms, under all locks. Step visits the effects of first, and
// then of more (nil: there are none), before all keys, each by itself. Close calls end, which calls
// its argument under all locks, when no walk is told of changes any more.
func New(
	at int64, first []effect.Effect, more iter.Seq[effect.Effect], end func(close func()),
) *Snapshot {
	s := &Snapshot{at: at, first: first, end: end, own: new(object.Batch)}
	if s.stop = func() {}; more != nil {
		s.next, s.stop = iter.Pull(more)
	}
	return s
}

// Walk adds the keys of a database in a shard, which has this lock.
func (s *Snapshot) Walk(lock *sync.Mutex, db int, keys *table.Table) *Walk {
	w := &Walk{lock: lock, db: db, keys: keys}
	w.save = func(o object.Object) { s.save(w, o) }
	s.walks = append(s.walks, w)
	s.total += int64(keys.Len())
	return w
}

// Step passes the next keys to visit, as effects that rebuild them in an empty engine, and reports
// whether it must be called again. The policies and scripts come first, each by itself.
// Keys that had expired at the time of the snapshot are omitted, and so are those evicted before
// the walk reaches them.
// Each call of visit is about one object, or a part of a large one: the parts come in order, but
// with other objects between them. The effects are valid until visit returns and must not be
// written to; only the names of their keys are set.
//
// One shard is locked at a time, for about 64 keys or 64 KB; visit is called under no lock. A large
// sorted set or hash is preserved at a cost that does not depend on its size, and visited in parts;
// a large string is visited whole.
func (s *Snapshot) Step(visit func(effects []effect.Effect)) (more bool) {
	return s.step(func(b *object.Batch) { b.Visit(visit) })
}

// StepEncoded is Step for groups of effects as effect.Append writes them.
func (s *Snapshot) StepEncoded(visit func(effects []byte)) (more bool) {
	return s.step(func(b *object.Batch) { b.VisitEncoded(visit) })
}

func (s *Snapshot) step(visit func(*object.Batch)) (more bool) {
	switch {
	case s.end == nil:
		return false
	case len(s.first) > 0:
		s.own.Put(&s.first[0])
		s.own.End()
		s.first = s.first[1:]
	case s.next != nil:
		s.takeNext()
	case s.takeKept():
	case len(s.large) > 0:
		if !s.large[0].Part(s.own) {
			s.large = slices.Delete(s.large, 0, 1)
		}
	case len(s.walks) > 0:
		if w := s.walks[0]; !s.walk(w) {
			s.walks = s.walks[1:]
		}
	default:
		s.Close()
		return false
	}
	s.large = append(s.large, s.own.Large...)
	visit(s.own)
	s.own.Reset()
	return true
}

// takeNext visits the next effects before all keys.
func (s *Snapshot) takeNext() {
	const some = 64
	for range some {
		f, ok := s.next()
		if !ok {
			s.next = nil
			return
		}
		s.own.Put(&f)
		s.own.End()
	}
}

// Keys returns how many keys are done, and how many there were at the time of the snapshot,
// including expired ones. Any goroutine may call it.
func (s *Snapshot) Keys() (done, total int64) { return s.done.Load(), s.total }

// Omitted reports whether keys were left out because they were evicted before their turn. Any
// goroutine may call it.
func (s *Snapshot) Omitted() bool { return s.omitted.Load() }

// Kept returns what changes have saved since the last Step. It is not to be changed.
func (s *Snapshot) Kept() []*object.Batch { return s.kept }

// Close ends the snapshot, even if it is not complete. Closing it again does nothing.
func (s *Snapshot) Close() {
	if s.end == nil {
		return
	}
	s.stop()
	s.end(func() {
		for _, b := range s.kept {
			s.large = append(s.large, b.Large...)
		}
		for _, l := range s.large {
			l.Close()
		}
	})
	s.end, s.first, s.next, s.walks, s.large, s.own, s.kept, s.spare = nil, nil, nil, nil, nil, nil, nil, nil
}

// Keep is called before the change of a key, which may be missing, under the lock of its shard: it
// saves the object under the key if this is the first change of the key and the walk has not
// reached it. place is the hash by which the table has the key.
func (s *Snapshot) Keep(w *Walk, place uint64) {
	if w.Overtake(place) {
		w.keys.Each(place, w.save)
	}
}

func (s *Snapshot) save(w *Walk, o object.Object) {
	s.done.Add(1)
	if o.Expired(s.at) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) == 0 || s.kept[len(s.kept)-1].Full() {
		s.kept = append(s.kept, cmp.Or(s.spare, new(object.Batch)))
		s.spare = nil
	}
	s.kept[len(s.kept)-1].Add(w.db, o)
}

// LeaveOut is Keep for a key that is evicted. Its object is not saved, as that would take more
// memory than the eviction frees: the snapshot omits it, as if it had been evicted a moment
// earlier. The log after the snapshot has its deletion and nothing else about it, because any
// change or copy would have saved it first.
func (s *Snapshot) LeaveOut(w *Walk, place uint64) {
	if w.Ahead(place) {
		s.done.Add(1)
		s.omitted.Store(true)
	}
}

// Removed is called after the removal of a key, under the lock of its shard. A nil Walk is none.
func (w *Walk) Removed(place uint64) {
	if w == nil || w.keys == nil {
		return
	}
	last := true
	if w.keys.Each(place, func(object.Object) { last = false }); last {
		w.Forget(place)
	}
}

// takeKept takes the oldest batch that changes have filled, if there is one, and gives them the
// empty one.
func (s *Snapshot) takeKept() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) == 0 {
		return false
	}
	s.own, s.spare = s.kept[0], s.own
	s.kept = slices.Delete(s.kept, 0, 1)
	return true
}

// walk adds the next keys of a table to the batch, and reports whether there are more.
func (s *Snapshot) walk(w *Walk) (more bool) {
	w.lock.Lock()
	defer w.lock.Unlock()
	seen := 0
	take := func(o object.Object) {
		seen++
		if w.Overtaken() > 0 && w.PassesBy(w.keys.HashOf(o)) {
			return
		}
		s.done.Add(1)
		if !o.Expired(s.at) {
			s.own.Add(w.db, o)
		}
	}
	for seen < object.StepKeys && !s.own.Full() {
		w.keys.PrefetchAt(w.Cursor)
		if w.Reach(w.keys.Scan(w.Cursor, 1, take)); w.Over() {
			w.keys = nil
			return false
		}
	}
	return true
}
