package engine

import (
	"cmp"

	"rlserver/engine/effect"
	"rlserver/engine/lock"
	"rlserver/engine/snapshot"
)

// Snapshot is the whole keyspace at one point in time, visited in steps while calls continue.
type Snapshot = snapshot.Snapshot

// Snapshot begins a snapshot. Under the locks of all shards, which it holds only while it lists the
// dicts, it calls cut. The snapshot contains the effects that the journal got before cut, so cut is
// where to note the journal's position. It panics if another snapshot is being taken.
func (e *Engine) Snapshot(cut func()) *Snapshot { return e.SnapshotAt(0, cut) }

// SnapshotAt is Snapshot without the keys that have expired at a time, Unix ms, rather than at the
// moment; 0: at the moment.
func (e *Engine) SnapshotAt(at int64, cut func()) *Snapshot {
	tx := e.NewTx()
	tx.BeginAll(0, 0, false)
	return tx.snapshot(at, cut)
}

// TrySnapshot is SnapshotAt, but does not wait for scripts that take long: if there is one, it
// returns nil, and does not call cut.
func (e *Engine) TrySnapshot(at int64, cut func()) *Snapshot {
	tx := e.NewTx()
	tx.wantAll()
	lock.All(tx.locked)
	if !e.Holds.Empty() {
		lock.Release(tx.locked)
		return nil
	}
	tx.startAt(0)
	return tx.snapshot(at, cut)
}

// snapshot begins a snapshot, and ends the call, which has all locks.
func (tx *Tx) snapshot(at int64, cut func()) *Snapshot {
	defer tx.unlock()
	e := tx.e
	if e.snapshot != nil {
		panic("engine: a snapshot is begun while another one is being taken")
	}
	scripts := e.Scripts.Cut(cut)
	var first []effect.Effect
	for _, p := range e.policies.Sorted() {
		first = append(first, p.Effect())
	}
	e.snapshot = snapshot.New(cmp.Or(at, tx.now), append(first, scripts...), e.overrides.CutEffects(), e.endSnapshot)
	for _, sh := range tx.locked {
		for db := range sh.dbs {
			if space := &sh.dbs[db]; space.size() > 0 {
				space.walk = e.snapshot.Walk(&sh.mu, db, space.keys)
			}
		}
	}
	return e.snapshot
}

func (e *Engine) endSnapshot(end func()) {
	tx := e.NewTx()
	tx.wantAll()
	tx.whole = false // no script is waited for
	tx.begin(0, 0, false, true)
	defer tx.unlock()
	for _, sh := range tx.locked {
		for db := range sh.dbs {
			sh.dbs[db].walk = nil
		}
	}
	e.snapshot = nil
	end()
}

// keepFor has the snapshot being taken save the objects that an effect is about to change, or to
// copy, as the original may be evicted later. An effect on a whole database moves or drops dicts
// but changes no object; the walks continue over them.
func (e *Engine) keepFor(f *effect.Effect) {
	if !f.Kind.ChangesKey() {
		return
	}
	e.shardOf(f.Key).keep(f.DB, f.Key.Hash)
	switch {
	case f.Kind.HasTo():
		e.shardOf(f.To).keep(f.Target(), f.To.Hash)
	case f.Kind == effect.Move:
		e.shardOf(f.Key).keep(f.ToDB, f.Key.Hash)
	}
}

// keep does the same before a key changes, or is added.
func (sh *shard) keep(db int, hash uint64) {
	switch w := sh.dbs[db].walk; {
	case w == nil:
	case sh.evicting:
		sh.e.snapshot.LeaveOut(w, sh.e.place(hash))
	default:
		sh.e.snapshot.Keep(w, sh.e.place(hash))
	}
}
