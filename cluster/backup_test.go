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
	f.caughtUp(0)
	for _, g := range f.nodes[0].Replicas() {
		f.eventually("a snapshot", g.Snapshot)
	}
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
	restored.settled()
	require.NoError(t, restored.start(1))
	require.NoError(t, restored.start(2))
	restored.matches("a", "b", "c")
	restored.settled()
	assert.NotEqual(t, old, restored.nodes[2].Map().ID)
	after := restored.load()
	for key := range before.admitted {
		after.admitted[key].Add(before.admitted[key].Load())
	}
	after.conserved()
}

// caughtUp waits until a node has all that is agreed on.
func (f *fleet) caughtUp(i int) {
	f.t.Helper()
	f.eventually("the node has all that is agreed on", func() error {
		for number, g := range f.nodes[i].groups() {
			leader := f.nodes[i].Leader(number)
			if leader == nil {
				return fmt.Errorf("group %d has no leader", number)
			}
			agreed := f.nodes[leader.Name[0]-'a'].Group(number).Status().Agreed
			if applied := g.Status().Applied; applied < agreed {
				return fmt.Errorf("group %d: %d of %d", number, applied, agreed)
			}
		}
		return nil
	})
}
