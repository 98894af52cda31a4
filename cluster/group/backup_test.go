package group

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestASnapshotIsABackup starts a replica from nothing but a copy of a snapshot.
func TestASnapshotIsABackup(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	first := tr.leader()
	require.NoError(t, first.group.HandOver(t.Context(), "test"))
	leader, r := tr.leading()
	for range 3 {
		_, err := admit(r, "k", 5)
		require.NoError(t, err)
	}
	require.NoError(t, leader.group.Snapshot())
	term := leader.group.Status().Term
	require.Greater(t, term, uint64(1))
	for _, n := range tr.nodes {
		n.stop()
	}

	alone := tr.nodes[leader.i]
	o := alone.options(0)
	from := o.Dir
	o.Dir = t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(o.Dir, "snapshots"), os.DirFS(filepath.Join(from, "snapshots"))))
	_, err := Recover(o)
	require.NoError(t, err)
	alone.open(o)
	_, r = tr.leading()
	allowed, err := admit(r, "k", 4)
	require.NoError(t, err)
	assert.True(t, allowed)
	assert.Equal(t, int64(4), used(r.Replica, "k"))
	assert.Greater(t, alone.group.Status().Term, term, "later entries have a later term than the snapshot")
}
