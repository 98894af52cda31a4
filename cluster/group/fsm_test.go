package group

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/internal/clock"
)

// newFSM returns the state of one replica, without raft.
func newFSM(t *testing.T) *fsm {
	f := &fsm{
		time: newTimeline(clock.System()), follows: func(uint64) bool { return true },
		digested: func(Digest) {},
		broken:   func(err error) { t.Errorf("the log cannot be applied: %v", err) },
	}
	f.replica.Store(newReplica(f.engine))
	return f
}

// lead makes the replica lead in a term.
func (f *fsm) lead(term uint64) *Partition {
	p := &Partition{Replica: f.replica.Load(), Clock: f.time.begin(nobody), term: term, ended: make(chan struct{})}
	p.lead(p)
	return p
}

// change runs a call that may change something.
func (p *Partition) change(do func(tx *engine.Tx, k func(string) engine.Key)) {
	tx := p.Engine.NewTx()
	tx.BeginAll(p.Clock.Now(), 0, true)
	do(tx, func(name string) engine.Key { return p.Engine.Key([]byte(name)) })
	tx.End()
}

// propose returns the entry of what has been appended, as it is committed in a term.
func (p *Partition) propose(index, term uint64) *raft.Log {
	p.Ask()
	return &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: p.take(nil)[0].entry}
}

func (f *fsm) get(name string) string {
	e := f.replica.Load().Engine
	tx, k := e.NewTx(), e.Key([]byte(name))
	tx.Begin(0, 0, []engine.Key{k}, false)
	defer tx.End()
	value, _, _ := tx.Get(k)
	return string(value)
}

// rename is a change that cannot be made twice.
func rename(tx *engine.Tx, k func(string) engine.Key) {
	tx.Set(k("a"), []byte("1"), engine.SetMode{})
	tx.Rename(k("a"), k("b"))
	tx.Set(k("a"), []byte("2"), engine.SetMode{})
	tx.Rename(k("b"), k("c"))
}

func TestOthersApplyAnEntryAndItsProposerSkipsIt(t *testing.T) {
	one, two := newFSM(t), newFSM(t)
	p := one.lead(5)
	p.change(rename)
	require.Equal(t, "2", one.get("a"))
	p.change(func(tx *engine.Tx, k func(string) engine.Key) { tx.Set(k("a"), []byte("3"), engine.SetMode{}) })
	log := p.propose(1, 5)
	p.change(func(tx *engine.Tx, k func(string) engine.Key) { tx.Set(k("a"), []byte("4"), engine.SetMode{}) })
	for _, f := range []*fsm{one, two} {
		assert.Nil(t, f.Apply(log))
		assert.Equal(t, "1", f.get("c"))
	}
	assert.Equal(t, "4", one.get("a"), "the proposer is ahead")
	assert.Equal(t, "3", two.get("a"))
}

func TestAnEntryOfAnEarlierLeadershipIsFenced(t *testing.T) {
	one, two := newFSM(t), newFSM(t)
	p := one.lead(5)
	p.change(rename)
	log := p.propose(1, 7)
	assert.Equal(t, errFenced, two.Apply(log))
	assert.Empty(t, two.get("c"))
	assert.Equal(t, errFenced, one.Apply(log))
	assert.ErrorIs(t, p.why(), errFenced, "its engine has what nobody commits")
	assert.False(t, p.Leads())
}

// sink is a snapshot in memory.
type sink struct{ bytes.Buffer }

func (*sink) ID() string    { return "1" }
func (*sink) Cancel() error { return nil }
func (*sink) Close() error  { return nil }

func TestASnapshotOfALeaderIsAheadAndTheLogRepeatsNothing(t *testing.T) {
	leader := newFSM(t)
	p := leader.lead(5)
	p.change(func(tx *engine.Tx, k func(string) engine.Key) { tx.Set(k("a"), []byte("1"), engine.SetMode{}) })
	leader.Apply(p.propose(1, 5))
	p.change(func(tx *engine.Tx, k func(string) engine.Key) { tx.Rename(k("a"), k("c")) })
	ahead, err := leader.Snapshot()
	require.NoError(t, err)
	p.change(func(tx *engine.Tx, k func(string) engine.Key) { tx.Set(k("a"), []byte("3"), engine.SetMode{}) })

	var stored sink
	done := make(chan error, 1)
	go func() { done <- ahead.Persist(&stored) }()
	select {
	case err := <-done:
		t.Fatalf("complete before its records are committed: %v", err)
	case <-time.After(20 * time.Millisecond): // there is nothing to wait for: it must not end
	}
	log := p.propose(2, 5)
	leader.Apply(log)
	require.NoError(t, <-done)
	ahead.Release()

	restored := newFSM(t)
	require.NoError(t, restored.Restore(io.NopCloser(&stored)))
	assert.Empty(t, restored.get("a"))
	assert.Nil(t, restored.Apply(log), "a rename cannot be made twice")
	assert.Equal(t, "3", restored.get("a"), "the record after the snapshot is applied")
	assert.Equal(t, "1", restored.get("c"))
}

func TestASnapshotFailsIfLeadershipEndsFirst(t *testing.T) {
	leader := newFSM(t)
	p := leader.lead(5)
	p.change(rename)
	ahead, err := leader.Snapshot()
	require.NoError(t, err)
	defer ahead.Release()
	p.end(slot.ErrNoLeader)
	assert.ErrorIs(t, ahead.Persist(new(sink)), slot.ErrNoLeader)
}

func TestACutSnapshotIsRefused(t *testing.T) {
	f := newFSM(t)
	p := f.lead(5)
	p.change(rename)
	f.Apply(p.propose(1, 5))
	s, err := f.Snapshot()
	require.NoError(t, err)
	var stored sink
	require.NoError(t, s.Persist(&stored))
	s.Release()
	follower := newFSM(t)
	follower.engine.Memory = engine.NewMemory()
	follower.replica.Store(newReplica(follower.engine))
	for size := range stored.Len() {
		assert.Error(t, follower.Restore(io.NopCloser(bytes.NewReader(stored.Bytes()[:size]))), "%d bytes", size)
	}
	engines := follower.engine.Memory.Engines()
	assert.Len(t, engines, 1, "what was read of a refused snapshot takes no memory, and no share of it")
	assert.Same(t, follower.replica.Load().Engine, engines[0])
}

func TestACallThatAppendsAfterLeadershipSpoilsTheReplica(t *testing.T) {
	f := newFSM(t)
	p := f.lead(5)
	p.end(slot.ErrNoLeader)
	require.NoError(t, p.why(), "nothing was on its way")
	p.change(rename)
	assert.Error(t, p.why())
	assert.Error(t, p.Wait(0))
}

func TestForeignEntriesAreNotApplied(t *testing.T) {
	for _, data := range [][]byte{nil, {1}, make([]byte, headerSize), bytes.Repeat([]byte{1}, headerSize+20)} {
		var fault error
		f := newFSM(t)
		f.broken = func(err error) { fault = err }
		f.Apply(&raft.Log{Index: 9, Term: 1, Data: data})
		if len(data) <= headerSize {
			assert.ErrorContains(t, fault, "entry 9 of the log")
		}
	}
}
