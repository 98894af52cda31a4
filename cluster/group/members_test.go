package group

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/cluster/clustertest"
)

func TestAReplicaIDIsReadAsItIsWritten(t *testing.T) {
	for _, id := range []ReplicaID{{"a", 0}, {"a/b", 1<<64 - 1}} {
		read, err := ParseReplicaID(id.String())
		assert.NoError(t, err)
		assert.Equal(t, id, read)
	}
	for _, s := range []string{"", "a", "/1", "a/", "a/x", "a/11111111111111111"} {
		_, err := ParseReplicaID(s)
		assert.Error(t, err, s)
	}
}

// change makes a change on the present leader.
func (tr *trio) change(c Change) {
	tr.t.Helper()
	tr.eventually(fmt.Sprint(c.Kind, " ", c.ID), func() bool { return tr.leader().group.Change(c, patience) == nil })
}

// TestALostReplicaIsReplaced has a node lose its replica: nothing connects to the new one under the
// old one's name, so that it does not vote, until it is a member in its own right.
func TestALostReplicaIsReplaced(t *testing.T) {
	clustertest.Long(t)
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	leader := tr.leader()
	lost, other := tr.nodes[(leader.i+1)%3], tr.nodes[(leader.i+2)%3]
	r, err := leader.group.Leading()
	require.NoError(t, err)
	_, err = admit(r, "k", 5)
	require.NoError(t, err)
	lost.stop()
	require.NoError(t, os.RemoveAll(fmt.Sprint(tr.dir, "/", lost.i)))
	lost.open(lost.options(7))

	// with the third node cut off, the leader and the node without its log are no majority
	other.stop()
	tr.eventually("leadership ends", func() bool { return !r.Leads() })
	assert.Empty(t, lost.group.Status().Members)
	other.start()
	tr.leader()

	fresh, old := ReplicaID{names[lost.i], 7}, ReplicaID{names[lost.i], 0}
	tr.change(Change{AddNonvoter, fresh})
	tr.alike()
	removed, _, ok := tr.leader().group.Removed(old)
	assert.True(t, ok)
	assert.False(t, removed)
	tr.change(Change{AddVoter, fresh})
	tr.change(Change{Remove, old})
	removed, _, ok = tr.leader().group.Removed(old)
	assert.True(t, ok && removed)
	assert.True(t, slices.Contains(tr.leader().group.Status().Members, Server{fresh, true}))

	// now it votes: the other one may go
	at := tr.leader()
	if at == lost {
		at = leader
	}
	at.stop()
	next, err := tr.leader(at.i).group.Leading()
	require.NoError(t, err)
	assert.Equal(t, int64(1), used(next.Replica, "k"))
}

func TestTheNoteOfAGroupIsOnAllReplicasAndInSnapshots(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	set := func(n Note) error {
		var err error
		tr.eventually("it is set or refused", func() bool {
			err = tr.leader().group.SetNote(n)
			return err == nil || err == ErrStale
		})
		return err
	}
	assert.Equal(t, ErrStale, set(Note{2, []byte("b")}))
	require.NoError(t, set(Note{1, []byte("a")}))
	require.NoError(t, set(Note{2, []byte("b")}))
	assert.Equal(t, ErrStale, set(Note{2, []byte("c")}))
	everywhere := func() bool {
		for _, n := range tr.nodes {
			if note := n.group.Note(); note == nil || note.Version != 2 || string(note.Data) != "b" {
				return false
			}
		}
		return true
	}
	tr.eventually("all replicas have it", everywhere)
	for _, n := range tr.nodes {
		require.NoError(t, n.group.Snapshot())
		n.stop()
	}
	tr.startAll()
	tr.eventually("it is in the snapshots", everywhere)
}

func TestOneReplicaGoesOnAlone(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	leader, r := tr.leading()
	for range 3 {
		_, err := admit(r, "k", 5)
		require.NoError(t, err)
	}
	require.NoError(t, leader.group.SetNote(Note{1, []byte("a")}))
	tr.alike()
	for _, n := range tr.nodes {
		n.stop()
	}
	alone := tr.nodes[(leader.i+1)%3]
	found, err := Recover(alone.options(0))
	require.NoError(t, err)
	assert.NotZero(t, found.Entries)
	assert.Equal(t, &Note{1, []byte("a")}, found.Note)
	alone.open(alone.options(0))
	_, r = tr.leading()
	allowed, err := admit(r, "k", 4)
	require.NoError(t, err)
	assert.True(t, allowed)
	assert.Equal(t, int64(4), used(r.Replica, "k"))
	assert.Equal(t, "a", string(alone.group.Note().Data))
}

// A log may end between the parts of a large record, when the others are lost.
func TestAReplicaWithAPartOfARecordGoesOnAlone(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	_, r := tr.leading()
	_, err := admit(r, "k", 5)
	require.NoError(t, err)
	tr.alike()
	for _, n := range tr.nodes {
		n.stop()
	}
	alone := tr.nodes[0]
	lead := newFSM(t).lead(r.Term())
	large(lead)
	logs := lead.proposeAll(0, r.Term())[:3] // without the last parts
	g := newGroup(alone.options(0))
	require.NoError(t, g.withFiles(g.config(nil), func(f files, _ raft.Transport) error {
		last, err := f.log.LastIndex()
		for i := range logs {
			logs[i].Index = last + 1 + uint64(i)
		}
		return errors.Join(err, f.log.StoreLogs(logs))
	}))
	_, err = Recover(alone.options(0))
	require.NoError(t, err)
	alone.open(alone.options(0))
	_, r = tr.leading()
	assert.Equal(t, int64(1), used(r.Replica, "k"))
	keys, _ := r.Engine.Size(0)
	assert.Equal(t, 2, keys, "what precedes the record is there")
}

// TestEntriesAfterASnapshotAreTakenTwice sends a replica again what follows the snapshot that it
// was sent, as a leader does that has not heard in time that it is stored.
func TestEntriesAfterASnapshotAreTakenTwice(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.timeout = short
	tr.startAll()
	tr.leader()
	for _, n := range tr.nodes {
		n.stop()
	}
	one, two := tr.nodes[0], tr.nodes[1]
	_, err := Recover(one.options(0)) // its log begins after a snapshot
	require.NoError(t, err)
	one.open(one.options(0))
	require.NoError(t, os.RemoveAll(fmt.Sprint(tr.dir, "/", two.i)))
	two.open(two.options(7))
	tr.change(Change{AddNonvoter, two.group.ID()})
	run := two.group.running.Load()
	tr.eventually("the snapshot is there, and what follows it", func() bool {
		first, _ := run.files.log.FirstIndex()
		list, _ := run.files.snapshots.List()
		return len(list) > 0 && first == list[0].Index+1
	})
	list, err := run.files.snapshots.List()
	require.NoError(t, err)
	tr.eventually("the entries after the snapshot fit", func() bool {
		id, to := one.group.ID().String(), two.group.ID().String()
		call := &raft.AppendEntriesRequest{
			RPCHeader:    raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(id)},
			Term:         run.raft.CurrentTerm(),
			PrevLogEntry: list[0].Index, PrevLogTerm: list[0].Term,
		}
		var answer raft.AppendEntriesResponse
		err := one.group.running.Load().trans.AppendEntries(raft.ServerID(to), raft.ServerAddress(to), call, &answer)
		return err == nil && answer.Success
	})
}
