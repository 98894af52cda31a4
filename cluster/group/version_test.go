package group

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDataOfOtherVersionsIsNamed(t *testing.T) {
	f := newFSM(t)
	var fault error
	f.broken = func(err error) { fault = err }
	p := f.lead(5)
	p.change(rename)
	entry := p.propose(1, 5)
	for _, c := range []struct {
		version byte
		says    string
	}{
		{entryVersion + 2, "it has to be upgraded"},
		{oldestEntry - 1, "it needs a server in between"}, // there is none before 1
	} {
		entry.Data[0] = c.version
		newFSM := newFSM(t)
		newFSM.broken = f.broken
		newFSM.Apply(entry)
		assert.ErrorContains(t, fault, fmt.Sprintf("entry of version %d, and this server knows version %d: %s",
			c.version, entryVersion, c.says))
		assert.Empty(t, newFSM.get("c"))
	}
	for _, version := range []byte{stateVersion + 2, oldestState - 1} {
		header := append([]byte(stateMagic), make([]byte, stateHeaderSize)...)
		header[len(stateMagic)] = version
		fault = nil
		err := f.Restore(io.NopCloser(bytes.NewReader(header)))
		assert.ErrorContains(t, err,
			fmt.Sprintf("snapshot of version %d, and this server knows version %d", version, stateVersion))
		assert.Equal(t, err, fault)
		assert.Equal(t, "2", f.get("a"), "the state stays")
	}
	// a server two versions later that reads these no more
	assert.ErrorContains(t, checkVersion("entry", entryVersion, entryVersion+2, entryVersion+2),
		fmt.Sprintf("entry of version %d, and this server knows version %d", entryVersion, entryVersion+2))
}

// older is a trio whose last node is two versions older than the others.
func older(t *testing.T) (tr *trio, last *node) {
	tr = newTrio(t)
	tr.trailing = 16
	tr.nodes[0].newer, tr.nodes[1].newer = 2, 2
	tr.startAll()
	last = tr.nodes[2]
	if leader := tr.leader(); leader == last {
		require.NoError(t, leader.group.HandOver(t.Context(), "a test", "a"))
		tr.leader(last.i)
	}
	return tr, last
}

// admitted makes a call on the leader, which is none of the nodes in not.
func (tr *trio) admitted(not ...int) {
	tr.t.Helper()
	r, err := tr.leader(not...).group.Leading()
	require.NoError(tr.t, err)
	allowed, err := admit(r, "k", 1<<40)
	require.NoError(tr.t, err)
	assert.True(tr.t, allowed)
}

// stopsUntilUpgraded waits until a node does not use its replica, and replaces its program.
func (tr *trio) stopsUntilUpgraded(n *node, says string) {
	tr.t.Helper()
	tr.eventually("it says why it stops", func() bool { return n.group.Status().Fault != nil })
	assert.ErrorContains(tr.t, n.group.Status().Fault, says)
	_, err := n.group.Leading()
	assert.ErrorIs(tr.t, err, ErrBroken)
	tr.admitted(n.i)
	n.stop()
	n.newer = 2
	n.open(n.options(0))
	tr.admitted()
	tr.alike()
}

func TestAnOlderReplicaStopsAtALaterEntry(t *testing.T) {
	t.Parallel()
	tr, last := older(t)
	tr.admitted(last.i)
	entry := make([]byte, headerSize, headerSize+9)
	header{kind: entryNote, first: 1}.put(entry)
	entry[0] = entryVersion + 2
	entry = append(binary.BigEndian.AppendUint64(entry, 1), 'x')
	run := tr.leader(last.i).group.running.Load()
	require.NoError(t, run.raft.ApplyLog(raft.Log{Data: entry}, 0).Error())
	tr.stopsUntilUpgraded(last, fmt.Sprintf(
		"entry of version %d, and this server knows version %d: it has to be upgraded", entryVersion+2, entryVersion))
	assert.Equal(t, "x", string(last.group.Note().Data), "nothing is lost")
}

func TestAnOlderReplicaStopsAtALaterSnapshot(t *testing.T) {
	t.Parallel()
	tr, last := older(t)
	last.stop()
	// a message that the leader is about to send may have this many entries from before the
	// snapshot
	for range 2 * maxAppended {
		tr.admitted(last.i)
	}
	// the log deletes whole files: what is still in the last one could be sent
	note := Note{1, make([]byte, segmentSize)}
	require.NoError(t, tr.leader(last.i).group.SetNote(note))
	for range tr.trailing + 50 {
		tr.admitted(last.i)
	}
	require.NoError(t, tr.leader(last.i).group.Snapshot())
	tr.admitted(last.i)
	last.open(last.options(0))
	tr.stopsUntilUpgraded(last, fmt.Sprintf(
		"snapshot of version %d, and this server knows version %d: it has to be upgraded",
		stateVersion+2, stateVersion))
}
