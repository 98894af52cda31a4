package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
)

// startAlone starts a group of one replica, and waits until it leads.
func (tr *trio) startAlone() *Group {
	n := tr.nodes[0]
	o := n.options(0)
	require.NoError(tr.t, Bootstrap(o, []ReplicaID{{Node: "a"}}))
	n.open(o)
	tr.leader()
	return n.group
}

// TestAGroupEndsWhileAnEntryWaitsToBeApplied closes a group several times: raft applies the entry
// that waits or not, by chance.
func TestAGroupEndsWhileAnEntryWaitsToBeApplied(t *testing.T) {
	t.Parallel()
	for range 8 {
		tr := newTrio(t)
		g := tr.startAlone()
		run := g.running.Load()
		applies, release := make(chan struct{}), make(chan struct{})
		run.fsm.follows = func(uint64) bool { // asked when the note is applied
			close(applies)
			<-release
			return false
		}
		go g.SetNote(Note{Version: 1})
		<-applies
		p, err := g.Leading()
		require.NoError(t, err)
		waits := p.ask(p)
		tr.eventually("an entry waits to be applied", func() bool { return run.raft.Stats()["fsm_pending"] == "1" })
		closed := make(chan error, 1)
		go func() { closed <- g.Close() }()
		<-run.ended
		close(release)
		select {
		case err := <-closed:
			assert.NoError(t, err)
		case <-time.After(patience):
			t.Fatal("the group does not end")
		}
		<-waits.of.done
	}
}

// TestTheSizeOfTheLogBeginsOneSnapshotAtATime has the size looked at several times while the
// snapshot that it has begun cannot go on.
func TestTheSizeOfTheLogBeginsOneSnapshotAtATime(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.snapshotBytes = 100_000
	g := tr.startAlone()
	p, err := g.Leading()
	require.NoError(t, err)
	run := g.running.Load()
	key := p.Engine.Key([]byte("k"))
	tx := p.Engine.NewTx()
	tx.Begin(p.Clock.Now(), 0, []engine.Key{key}, true)
	tx.Set(key, make([]byte, tr.snapshotBytes), engine.SetMode{})
	tx.End()
	tx.Begin(p.Clock.Now(), 0, []engine.Key{key}, false) // the snapshot waits for this lock
	assert.NoError(t, p.Wait(0))
	for range 5 {
		g.tick(run)
	}
	assert.False(t, run.snapshot.TryLock())
	tx.End()
	assert.NoError(t, g.Snapshot(), "after all that were begun before")
	tr.eventually("two snapshots", func() bool { return g.counters.snapshots.Load() == 2 })
}

func TestACallOfAnEarlierLeadershipIsNotConfirmed(t *testing.T) {
	f := newFSM(t)
	before := f.lead(5)
	before.end(nil)
	assert.Equal(t, ErrUnknown, before.Wait(0))
	// another replica may have led in term 6
	now := f.lead(7)
	assert.Equal(t, ErrUnknown, before.Wait(0))
	outcome := now.Ask()
	b := now.take(nil)[0]
	require.NotNil(t, b)
	now.applied(b, nil)
	assert.NoError(t, outcome())
}
