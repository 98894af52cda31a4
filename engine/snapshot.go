package engine

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/engine/policy"
	"rlserver/engine/table"
	"rlserver/internal/dict"
)

// Snapshot is the whole keyspace at one point in time, visited in steps while calls continue. It
// must be closed. Except for Keys, it is for use by one goroutine.
//
// Step walks through each table of that time in the order of hashes. The first change of a key
// that the walk has not reached saves the key's value first. So each key is visited once, as it
// was.
//
// Besides the keyspace it takes memory for the values that changes have saved since the last Step:
// in all Steps together at most one copy of each small object and a part of each large one. It also
// takes memory for the names of the keys changed or created ahead of the walk, until the walk has
// finished their shard.
type Snapshot struct {
	e      *Engine
	at     int64 // the time of the snapshot, Unix ms
	closed bool

	policies []*policy.Policy // visited first
	scripts  []effect.Effect  // and then these
	walks    []*spaceWalk     // those that are not finished
	large    []*object.Large  // objects from walks and changes, visited in parts
	own      *object.Batch    // the objects that this Step visits

	total   int64
	done    atomic.Int64
	omitted atomic.Bool // a key was evicted before its turn

	// locked by changes, under the lock of a shard, and by Step, under no other
	mu    sync.Mutex
	kept  []*object.Batch // objects saved by changes; the last batch is being filled
	spare *object.Batch
}

// spaceWalk is the walk through one database's keys in one shard. It stays with the dict of the
// moment, even if SWAPDB moves it or FLUSHDB drops it from the keyspace. The shard's lock guards
// it.
type spaceWalk struct {
	dict.Passage
	shard *shard
	db    int          // at the time of the snapshot
	keys  *table.Table // nil at the end
}

// Snapshot begins a snapshot. Under the locks of all shards, which it holds only while it lists the
// dicts, it calls cut. The snapshot contains the effects that the journal got before cut, so cut is
// where to note the journal's position. It panics if another snapshot is being taken.
func (e *Engine) Snapshot(cut func()) *Snapshot { return e.SnapshotAt(0, cut) }

// SnapshotAt is Snapshot without the keys that have expired at a time, Unix ms, rather than at the
// moment; 0: at the moment.
func (e *Engine) SnapshotAt(at int64, cut func()) *Snapshot {
	tx := e.NewTx()
	tx.BeginAll(0, 0, false)
	defer tx.unlock()
	if e.snapshot != nil {
		panic("engine: a snapshot is begun while another one is being taken")
	}
	scripts := e.Scripts.Cut(cut)
	s := &Snapshot{
		e: e, at: cmp.Or(at, tx.now), own: new(object.Batch), policies: e.policies.Sorted(), scripts: scripts,
	}
	for i := range e.shards {
		s.begin(&e.shards[i])
	}
	e.snapshot = s
	return s
}

func (s *Snapshot) begin(sh *shard) {
	for db := range sh.dbs {
		space := &sh.dbs[db]
		if n := space.size(); n > 0 {
			space.walk = &spaceWalk{shard: sh, db: db, keys: space.keys}
			s.walks = append(s.walks, space.walk)
			s.total += int64(n)
		}
	}
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
// a large string is visited whole, but not copied.
func (s *Snapshot) Step(visit func(effects []effect.Effect)) (more bool) {
	switch {
	case s.closed:
		return false
	case len(s.policies) > 0:
		for _, p := range s.policies {
			s.own.Put(policyEffect(p))
			s.own.End()
		}
		s.policies = nil
	case len(s.scripts) > 0:
		s.own.Put(s.scripts[0])
		s.own.End()
		s.scripts = s.scripts[1:]
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
	s.own.Visit(visit)
	s.own.Reset()
	return true
}

// Keys returns how many keys are done, and how many there were at the time of the snapshot,
// including expired ones. Any goroutine may call it.
func (s *Snapshot) Keys() (done, total int64) { return s.done.Load(), s.total }

// Omitted reports whether keys were left out because they were evicted before their turn. Any
// goroutine may call it.
func (s *Snapshot) Omitted() bool { return s.omitted.Load() }

// Close ends the snapshot, even if it is not complete. Closing it again does nothing.
func (s *Snapshot) Close() {
	if s.closed {
		return
	}
	s.closed = true
	tx := s.e.NewTx()
	tx.wantAll()
	tx.whole = false // no script is waited for
	tx.begin(0, 0, false, true)
	defer tx.unlock()
	for i := range s.e.shards {
		for db := range s.e.shards[i].dbs {
			s.e.shards[i].dbs[db].walk = nil
		}
	}
	s.e.snapshot = nil
	for _, b := range s.kept {
		s.large = append(s.large, b.Large...)
	}
	for _, l := range s.large {
		l.Close()
	}
	s.walks, s.large, s.own, s.kept, s.spare = nil, nil, nil, nil, nil
}

// before saves the objects that an effect is about to change, or to copy, as the original may be
// evicted later. o is the object under its key. An effect on a whole database moves or drops dicts
// but changes no object; the walks continue over them.
func (s *Snapshot) before(o object.Object, f *effect.Effect) {
	if !f.Kind.ChangesKey() {
		return
	}
	s.keep(f.DB, f.Key, o)
	switch {
	case f.Kind.HasTo():
		s.keep(f.Target(), f.To, s.e.shardOf(f.To).find(f.Target(), f.To))
	case f.Kind == effect.Move:
		s.keep(f.ToDB, f.Key, s.e.shardOf(f.Key).find(f.ToDB, f.Key))
	}
}

// keep saves the object under a key (nil: missing) if this is the first change of the key and the
// walk has not reached it.
//
// An evicted object is not saved, as that would take more memory than the eviction frees: the
// snapshot omits it, as if it had been evicted a moment earlier. The log after the snapshot has its
// deletion and nothing else about it, because any change or copy would have saved it first.
func (s *Snapshot) keep(db int, k Key, o object.Object) {
	w := s.e.shardOf(k).dbs[db].walk
	if w != nil && s.e.shardOf(k).evicting {
		if w.LeaveOut(s.e.place(k.Hash), k.Name) {
			s.done.Add(1)
			s.omitted.Store(true)
		}
		return
	}
	if w == nil || !w.Overtake(s.e.place(k.Hash), k.Name) || o == nil {
		return
	}
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

// walk adds the next keys of a dict to the batch, and reports whether there are more.
func (s *Snapshot) walk(w *spaceWalk) (more bool) {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	seen := 0
	take := func(o object.Object) {
		seen++
		if w.PassesBy(o.Name()) {
			return
		}
		s.done.Add(1)
		if !o.Expired(s.at) {
			s.own.Add(w.db, o)
		}
	}
	for seen < object.StepKeys && !s.own.Full() {
		if w.Reach(w.keys.Scan(w.Cursor, 1, take)); w.Over() {
			w.keys = nil
			return false
		}
	}
	return true
}
