package cluster

import (
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFreshNodesJoinARestoredCluster restores one of three nodes from a backup, and lets two join
// that have no data.
func TestFreshNodesJoinARestoredCluster(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	before := f.load()
	before.goesOn()
	before.end()
	f.takesSnapshots(0)
	to := filepath.Join(f.dir, "backup")
	require.NoError(t, Backup(f.options[0].Dir, to, io.Discard))
	old := f.nodes[0].Map().ID
	for i := range f.nodes {
		f.stop(i)
	}

	restored := newFleet(t, 3, nil)
	restored.options[0].Dir = to
	restored.options[0].Join = nil
	require.NoError(t, restored.start(0))
	restored.stable()
	require.NoError(t, restored.start(1))
	require.NoError(t, restored.start(2))
	restored.matches("a", "b", "c")
	restored.stable()
	assert.NotEqual(t, old, restored.nodes[2].Map().ID)
	after := restored.load()
	for key := range before.admitted {
		after.admitted[key].Add(before.admitted[key].Load())
	}
	after.conserved()
}

// TestARestoredNodeCanBeRecovered loses two of three nodes of a cluster that was restored.
func TestARestoredNodeCanBeRecovered(t *testing.T) {
	t.Parallel()
	f := startFleet(t, 3)
	f.takesSnapshots(0)
	to := filepath.Join(f.dir, "backup")
	// the node of the backup was recovered before, and not started without the option since
	f.nodes[0].adopting.Lock()
	f.nodes[0].saved.Recovered = true
	require.NoError(t, f.nodes[0].store(false))
	f.nodes[0].adopting.Unlock()
	require.NoError(t, Backup(f.options[0].Dir, to, io.Discard))
	for i := range f.nodes {
		f.stop(i)
	}

	restored := newFleet(t, 3, nil)
	restored.options[0].Dir = to
	restored.startAll()
	restored.matches("a", "b", "c")
	was := restored.nodes[0].Map().ID
	for i := range restored.nodes {
		restored.stop(i)
	}
	restored.options[0].ForceRecover, restored.options[0].Timeout = true, brief
	require.NoError(t, restored.start(0))
	testLogged(restored, "FORCED RECOVERY: this node goes on alone")
	assert.NotContains(t, restored.log.get(), "it was used already")
	restored.stable()
	assert.NotEqual(t, was, restored.nodes[0].Map().ID)
	assert.Len(t, restored.nodes[0].Map().Members, 1)
}

// takesSnapshots takes a snapshot of each replica on a node. A replica that has applied nothing yet
// would have nothing to write.
func (f *fleet) takesSnapshots(i int) {
	f.t.Helper()
	f.caughtUp(i)
	for _, g := range f.nodes[i].Replicas() {
		f.eventually("a snapshot", g.Snapshot)
	}
}

// caughtUp waits until a node has all that is committed.
func (f *fleet) caughtUp(i int) {
	f.t.Helper()
	f.eventually("the node has all that is committed", func() error {
		for number, g := range f.nodes[i].groups() {
			leader := f.nodes[i].Leader(number)
			if leader == nil {
				return fmt.Errorf("group %d has no leader", number)
			}
			committed := f.nodes[leader.Name[0]-'a'].Group(number).Status().Committed
			if applied := g.Status().Applied; applied < committed {
				return fmt.Errorf("group %d: %d of %d", number, applied, committed)
			}
		}
		return nil
	})
}
