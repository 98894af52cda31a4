package group

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/engine/eviction"
)

// restoredFrom returns the state of a replica that gets a snapshot of another.
func restoredFrom(t *testing.T, f *fsm) *fsm {
	s, err := f.Snapshot()
	require.NoError(t, err)
	var stored sink
	require.NoError(t, s.Persist(&stored))
	s.Release()
	r := newFSM(t)
	require.NoError(t, r.Restore(io.NopCloser(&stored)))
	return r
}

// fields returns how many fields the hash at h has, -1 if it is none.
func (f *fsm) fields() int {
	e := f.replica.Load().Engine
	tx, k := e.NewTx(), e.Key([]byte("h"))
	tx.Begin(0, 0, []engine.Key{k}, false)
	defer tx.End()
	h, err := tx.Hash(k)
	if err != nil {
		return -1
	}
	return h.Len()
}

func setField(tx *engine.Tx, k func(string) engine.Key) {
	tx.HSet(k("h"), [][]byte{[]byte("new"), []byte("1")})
}

// expired has replicas apply a change of keys, and then an entry by which they have expired.
func (p *Partition) expired(t *testing.T, change func(*engine.Tx, func(string) engine.Key, int64), by ...*fsm) {
	deadline := p.Clock.Now() + 1
	p.change(func(tx *engine.Tx, k func(string) engine.Key) { change(tx, k, deadline) })
	log := p.propose(1, 5)
	for p.Clock.Now() <= deadline {
		time.Sleep(time.Millisecond)
	}
	beat := p.propose(2, 5)
	for _, f := range by {
		assert.Nil(t, f.Apply(log))
		assert.Nil(t, f.Apply(beat))
	}
}

// A key that has expired by the log, and that no leader has deleted, is in the state of those who
// have applied the log. If a restored replica lacks it and leads, it makes the key anew without
// deleting it first.
func TestARestoredReplicaHasExpiredKeysToo(t *testing.T) {
	for name, change := range map[string]func(*engine.Tx, func(string) engine.Key, int64){
		"hash": func(tx *engine.Tx, k func(string) engine.Key, deadline int64) {
			tx.HSet(k("h"), [][]byte{[]byte("old"), []byte("1")})
			tx.Expire(k("h"), deadline, 0)
		},
		"string": func(tx *engine.Tx, k func(string) engine.Key, deadline int64) {
			tx.Set(k("h"), []byte("1"), engine.SetMode{ExpireAt: deadline})
		},
	} {
		t.Run(name, func(t *testing.T) {
			first, follower, other := newFSM(t), newFSM(t), newFSM(t)
			first.lead(5).expired(t, change, follower, other)
			restored := restoredFrom(t, other) // the first leader is gone
			q := restored.lead(6)
			q.change(setField)
			assert.Nil(t, follower.Apply(q.propose(3, 6)))
			assert.Equal(t, 1, restored.fields())
			assert.Equal(t, 1, follower.fields())
		})
	}
}

// A script keeps its keys and its time.
func TestAScriptChangesAKeyThatHasExpiredByTheLog(t *testing.T) {
	leader, follower := newFSM(t), newFSM(t)
	p := leader.lead(5)
	script, k, to := p.Engine.NewTx(), p.Engine.Key([]byte("a")), p.Engine.Key([]byte("b"))
	p.expired(t, func(tx *engine.Tx, key func(string) engine.Key, deadline int64) {
		tx.Set(key("a"), []byte("1"), engine.SetMode{ExpireAt: deadline})
	}, follower)
	restored := restoredFrom(t, follower)
	script.Begin(0, 0, []engine.Key{k, to}, true)
	require.NoError(t, script.Rename(k, to))
	script.End()

	log := p.propose(3, 5)
	assert.Nil(t, follower.Apply(log))
	assert.Nil(t, restored.Apply(log), "it has the key")
}

// A key that is evicted while the snapshot is written is left out: the eviction has to be committed
// before the snapshot is complete.
func TestASnapshotWaitsForTheEvictionOfWhatItLacks(t *testing.T) {
	leader := newFSM(t)
	leader.engine.Memory = engine.NewMemory()
	leader.replica.Store(newReplica(leader.engine))
	p := leader.lead(5)
	const keys = 1000
	p.change(func(tx *engine.Tx, k func(string) engine.Key) {
		for i := range keys {
			tx.Set(k(fmt.Sprint(i)), make([]byte, 1000), engine.SetMode{})
		}
	})
	p.Ask()
	for i, b := range p.take(nil) {
		leader.Apply(&raft.Log{Index: uint64(1 + i), Term: 5, Type: raft.LogCommand, Data: b.entry})
	}
	s, err := leader.Snapshot()
	require.NoError(t, err)
	defer s.Release()
	p.Engine.SetEviction(eviction.AllKeysLRU, 5)
	leader.engine.Memory.SetBudget(500 << 10)
	tx := p.Engine.NewTx()
	for range 100 {
		tx.MakeRoom(p.Clock.Now())
	}
	left, _ := p.Engine.Size(0)
	require.Less(t, left, keys)

	done := make(chan error, 1)
	go func() { done <- s.Persist(new(sink)) }()
	select {
	case err := <-done:
		t.Fatalf("complete before the evictions are committed: %v", err)
	case <-time.After(100 * time.Millisecond): // there is nothing to wait for: it must not end
	}
	p.end(slot.ErrNoLeader) // nobody commits them
	assert.Error(t, <-done)
}

// A leadership may end while the entry of a digest is on its way, and nothing else is.
func TestADigestThatIsLostDoesNotKeepALaterOneFrom(t *testing.T) {
	deposed, next := newFSM(t), newFSM(t)
	p := deposed.lead(5)
	p.change(rename)
	log := p.propose(1, 5)
	deposed.Apply(log)
	next.Apply(log)
	done := make(chan Digest, 1)
	deposed.digested = func(d Digest) { done <- d }
	p.inFlight = 0 // as the group has it after the entry
	now := p.Clock.Now()
	p.digest.take(p.Engine, now, func() bool { return p.mark(now) })
	require.NotEmpty(t, p.take(nil))
	p.end(slot.ErrNoLeader)
	require.NoError(t, p.why())

	q := next.lead(6)
	barrier := make([]byte, headerSize)
	header{kind: entryBarrier, proposer: q.id, first: 1}.put(barrier)
	deposed.Apply(&raft.Log{Index: 2, Term: 6, Type: raft.LogCommand, Data: barrier})
	now = q.Clock.Now()
	q.digest.take(q.Engine, now, func() bool { return q.mark(now) })
	entries := q.take(nil)
	require.NotEmpty(t, entries)
	for i, b := range entries {
		deposed.Apply(&raft.Log{Index: uint64(3 + i), Term: 6, Type: raft.LogCommand, Data: b.entry})
	}
	assert.NotZero(t, <-done)
}
