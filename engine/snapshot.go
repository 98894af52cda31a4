package engine

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"rlserver/dict"
)

// Snapshot is the whole keyspace at one moment, visited in steps while the engine goes on. It has
// to be closed. It is for use by one goroutine, but for Keys.
//
// Step walks through each dict of that moment, in the order of hashes. The first change of a key
// that the walk has not reached saves beforehand what the key holds. So each key is visited once,
// as it was.
//
// Beside the keyspace it takes memory for what changes have saved since the last Step, which is no
// more than one copy of each small object and a share of each large one for all Steps together; and
// for the names of the keys changed or made ahead of the walk, until the walk has finished with
// their shard.
type Snapshot struct {
	e      *Engine
	at     int64 // the moment, Unix ms
	closed bool

	policies []*Policy    // to be visited first
	walks    []*spaceWalk // those that are not through yet
	large    []*large     // objects taken from walks and changes, to be visited in parts
	own      *batch       // what this Step visits

	total int64
	done  atomic.Int64

	mu    sync.Mutex // taken by changes, under the lock of a shard, and by Step, under none
	kept  []*batch   // from changes; the last is being filled
	spare *batch
}

// spaceWalk is the walk through one database's keys in one shard. It stays with the dict of the
// moment, wherever SWAPDB moves it, and also when FLUSHDB drops it from the keyspace. The
// shard's lock guards it.
type spaceWalk struct {
	passage
	shard *shard
	db    int                // at the moment
	keys  *dict.Dict[object] // nil at the end
}

// What a Step does under a lock ends with these, or a little later: buckets of a dict are taken
// whole.
const (
	stepKeys  = 64
	stepBytes = 64 << 10
)

// Snapshot begins a snapshot: under the locks of all shards, for as long as it takes to note which
// dicts there are, it calls cut. The effects that the journal got before are those that the
// snapshot contains, so cut is where to note the journal's position. Another snapshot must not be
// under way: it panics.
func (e *Engine) Snapshot(cut func()) *Snapshot {
	tx := e.NewTx()
	tx.BeginAll(0, 0, false)
	defer tx.unlock()
	if e.snapshot != nil {
		panic("engine: a snapshot is begun while another one is being taken")
	}
	cut()
	s := &Snapshot{e: e, at: tx.now, own: new(batch), policies: e.Policies()}
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

// Step hands the next keys to visit, as effects that rebuild them in an empty engine, and reports
// whether it is to be called again. The policies come first, each by itself. Keys that had expired
// at the snapshot's moment are left out, and those that are evicted before their turn comes. Each
// call of visit is about one object, or a part of a large one: then the parts come in order, though
// not one after the other. The effects hold until visit returns, are not to be written to, and of
// their keys only the names are set.
//
// One shard is locked at a time, for about 64 keys or 64 KB; visit is called under no lock. A large
// sorted set or hash is kept as it is at a price that does not depend on its size, and visited in
// parts; a large string is visited whole, but not copied.
func (s *Snapshot) Step(visit func(effects []Effect)) (more bool) {
	switch {
	case s.closed:
		return false
	case len(s.policies) > 0:
		for _, p := range s.policies {
			s.own.put(p.effect())
			s.own.end()
		}
		s.policies = nil
	case s.takeKept():
	case len(s.large) > 0:
		if !s.large[0].part(s.own) {
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
	s.large = append(s.large, s.own.large...)
	s.own.visit(visit)
	s.own.reset()
	return true
}

// Keys returns how many keys have been taken, and how many there were at the snapshot's moment,
// expired ones included. Any goroutine may ask.
func (s *Snapshot) Keys() (done, total int64) { return s.done.Load(), s.total }

// Close ends the snapshot, before its end too: it gives up then. To close it again does nothing.
func (s *Snapshot) Close() {
	if s.closed {
		return
	}
	s.closed = true
	tx := s.e.NewTx()
	tx.BeginAll(0, 0, false)
	defer tx.unlock()
	for i := range s.e.shards {
		for db := range s.e.shards[i].dbs {
			s.e.shards[i].dbs[db].walk = nil
		}
	}
	s.e.snapshot = nil
	for _, b := range s.kept {
		s.large = append(s.large, b.large...)
	}
	for _, l := range s.large {
		l.close()
	}
	s.walks, s.large, s.own, s.kept, s.spare = nil, nil, nil, nil, nil
}

// before hands out what an effect is about to change, or copies, as it may be evicted later. o is
// what is under its key. An effect on a whole database changes no object, only where dicts are, if
// anywhere; the walks go on over them.
func (s *Snapshot) before(o object, f *Effect) {
	if !f.Kind.changesKey() {
		return
	}
	s.keep(f.DB, f.Key, o)
	switch {
	case f.Kind.hasTo():
		s.keep(f.target(), f.To, s.e.shardOf(f.To).find(f.target(), f.To))
	case f.Kind == EffectMove:
		s.keep(f.ToDB, f.Key, s.e.shardOf(f.Key).find(f.ToDB, f.Key))
	}
}

// keep hands out what is under a key, nil for nothing, if this is the first change of the key and
// the walk has not come to it.
//
// What is evicted is not handed out, as that would take more memory than goes: it is left out, as
// if it had gone a moment earlier. What the journal got after the snapshot says that it went, and
// nothing else of it: a change or a copy of it has saved it first.
func (s *Snapshot) keep(db int, k Key, o object) {
	w := s.e.shardOf(k).dbs[db].walk
	if w != nil && s.e.shardOf(k).evicting {
		if w.leaveOut(s.e.place(k.hash), k.Name) {
			s.done.Add(1)
		}
		return
	}
	if w == nil || !w.overtake(s.e.place(k.hash), k.Name) || o == nil {
		return
	}
	s.done.Add(1)
	if o.head().expired(s.at) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) == 0 || s.kept[len(s.kept)-1].full() {
		s.kept = append(s.kept, cmp.Or(s.spare, new(batch)))
		s.spare = nil
	}
	s.kept[len(s.kept)-1].add(w.db, o)
}

// takeKept takes the oldest batch that changes handed out, if there is any, and leaves the empty
// one to them.
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

// walk takes the next keys of a dict, and reports whether there are more.
func (s *Snapshot) walk(w *spaceWalk) (more bool) {
	w.shard.mu.Lock()
	defer w.shard.mu.Unlock()
	seen := 0
	take := func(o object) {
		seen++
		if w.passesBy(o.head().name) {
			return
		}
		s.done.Add(1)
		if !o.head().expired(s.at) {
			s.own.add(w.db, o)
		}
	}
	for seen < stepKeys && !s.own.full() {
		if w.reach(w.keys.Scan(w.cursor, 1, take)); w.over() {
			w.keys = nil
			return false
		}
	}
	return true
}

// passage is a walk through a dict in steps, while others change it: how far it has come, and what
// it passes by from there on.
//
//	place   0                      cursor                        2^32
//	        |  walked: may change  |  to be walked, but for what  |
//	                                  others have overtaken
type passage struct {
	cursor uint64 // of dict.Scan, or passed
	// names further on that were changed, came or went since the walk began
	overtaken map[string]struct{}
}

const passed = 1 << 32

// overtake is called before something changes under a name with this hash, and reports whether the
// walk was to come to it, but will not now.
func (p *passage) overtake(hash uint64, name []byte) bool {
	if hash>>32 < p.cursor || p.passesBy(string(name)) {
		return false
	}
	if p.overtaken == nil {
		p.overtaken = make(map[string]struct{})
	}
	p.overtaken[string(name)] = struct{}{}
	return true
}

// leaveOut is called before what a name holds is evicted, and reports whether the walk was to come
// to it. If the name holds something later, that overtakes the walk as a new key does.
func (p *passage) leaveOut(hash uint64, name []byte) bool {
	ahead := hash>>32 >= p.cursor && !p.passesBy(string(name))
	delete(p.overtaken, string(name))
	return ahead
}

func (p *passage) passesBy(name string) bool {
	_, ok := p.overtaken[name]
	return ok
}

// reach moves the walk on to what Scan returned.
func (p *passage) reach(next uint64) {
	if p.cursor = next; next == 0 {
		p.cursor, p.overtaken = passed, nil
	}
}

func (p *passage) over() bool { return p.cursor == passed }
