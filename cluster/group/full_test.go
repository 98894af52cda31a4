package group

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// disk is a file system that can be full, or hang.
type disk struct {
	types.VFS
	full, files *atomic.Bool  // for all writes, and for new files
	hangs       *sync.RWMutex // writes wait while it is locked
}

func (d disk) Create(dir, name string, size uint64) (types.WritableFile, error) {
	if d.full.Load() || d.files.Load() {
		return nil, syscall.ENOSPC
	}
	f, err := d.VFS.Create(dir, name, size)
	return diskFile{f, d.full, d.hangs}, err
}

func (d disk) OpenWriter(dir, name string) (types.WritableFile, error) {
	f, err := d.VFS.OpenWriter(dir, name)
	return diskFile{f, d.full, d.hangs}, err
}

type diskFile struct {
	types.WritableFile
	full  *atomic.Bool
	hangs *sync.RWMutex
}

// WriteAt writes half of it if there is no more space, as a system may.
func (f diskFile) WriteAt(p []byte, at int64) (int, error) {
	f.hangs.RLock()
	defer f.hangs.RUnlock()
	if f.full.Load() {
		n, _ := f.WritableFile.WriteAt(p[:len(p)/2], at)
		return n, syscall.ENOSPC
	}
	return f.WritableFile.WriteAt(p, at)
}

// TestTheDiskOfALeaderIsFull also fills it when the log needs a new file, which is made in the
// background.
func TestTheDiskOfALeaderIsFull(t *testing.T) {
	for _, newFile := range []bool{false, true} {
		tr := newTrio(t)
		var full, files [3]atomic.Bool
		for i, n := range tr.nodes {
			n.disk = func(v types.VFS) types.VFS { return disk{v, &full[i], &files[i], new(sync.RWMutex)} }
		}
		tr.startAll()
		leader, r := tr.leading()
		acknowledged := int64(0)
		call := func(r *Partition) error {
			allowed, err := admit(r, "k", 1<<40)
			if err == nil && allowed {
				acknowledged++
			}
			return err
		}
		require.NoError(t, call(r))
		if newFile {
			files[leader.i].Store(true)
			// it is the last one of its file
			leader.group.SetNote(Note{1, make([]byte, segmentSize)})
		} else {
			full[leader.i].Store(true)
		}
		assert.Error(t, call(r))
		assert.ErrorIs(t, leader.group.Figures().Disk, syscall.ENOSPC)
		other, err := tr.leader(leader.i).group.Leading()
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, call(other))
		}
		_, err = leader.group.Leading()
		assert.Error(t, err)
		assert.ErrorIs(t, leader.group.Figures().Disk, syscall.ENOSPC, "metrics and readiness say so")

		full[leader.i].Store(false)
		files[leader.i].Store(false)
		require.NoError(t, call(other))
		tr.alike()
		tr.eventually("the disk is in order", func() bool { return leader.group.Figures().Disk == nil })
		have := used(leader.group.running.Load().fsm.replica.Load(), "k")
		assert.GreaterOrEqual(t, have, acknowledged)
		assert.LessOrEqual(t, have, acknowledged+1, "of one call the outcome is unknown")
		for _, n := range tr.nodes {
			n.stop()
		}
	}
}

// newHangingTrio starts three nodes. The disk of each hangs while its lock is held.
func newHangingTrio(t *testing.T) (tr *trio, hangs *[3]sync.RWMutex) {
	tr, hangs = newTrio(t), new([3]sync.RWMutex)
	tr.timeout, tr.patience = short, short
	for i, n := range tr.nodes {
		n.disk = func(v types.VFS) types.VFS { return disk{v, new(atomic.Bool), new(atomic.Bool), &hangs[i]} }
	}
	tr.startAll()
	return tr, hangs
}

// serves waits until a call is committed under a leader other than those with the numbers in not.
func (tr *trio) serves(not ...int) {
	tr.t.Helper()
	tr.eventually("a node serves", func() bool {
		p, err := tr.leader(not...).group.Leading()
		if err == nil {
			_, err = admit(p, "k", 1<<40)
		}
		return err == nil
	})
}

// A leader whose disk hangs still sends heartbeats. Another node takes over nevertheless, and
// nobody waits for ever.
func TestTheDiskOfALeaderHangs(t *testing.T) {
	t.Parallel()
	tr, hangs := newHangingTrio(t)
	leader, r := tr.leading()
	hangs[leader.i].Lock()
	_, err := admit(r, "k", 1<<40)
	assert.ErrorIs(t, err, ErrUnknown)
	tr.serves(leader.i)
	hangs[leader.i].Unlock()
	tr.alike()
}

// The same for a leader whose disk hangs before it serves.
func TestTheDiskOfANewLeaderHangs(t *testing.T) {
	t.Parallel()
	tr, hangs := newHangingTrio(t)
	leader := tr.leader()
	next := tr.nodes[(leader.i+1)%3]
	hangs[next.i].Lock()
	leader.group.HandOver(t.Context(), "a test", names[next.i])
	tr.serves(next.i)
	hangs[next.i].Unlock()
	tr.alike()
}

// Leadership is not given to a replica whose disk hangs, and calls are served while it is asked.
func TestLeadershipGoesToWhoStores(t *testing.T) {
	t.Parallel()
	tr, hangs := newHangingTrio(t)
	for tries, led := 0, false; !led; tries++ { // a leader that is too slow loses its leadership
		require.Less(t, tries, 20)
		tr.serves()
		tr.alike()
		leader := tr.leader()
		next, other := tr.nodes[(leader.i+1)%3], tr.nodes[(leader.i+2)%3]
		hangs[next.i].Lock()
		unlock := sync.OnceFunc(hangs[next.i].Unlock)
		t.Cleanup(unlock) // before the nodes are stopped
		var err error
		if err, led = leader.handsOverAndServes(next); led {
			hung, ok := errors.AsType[*NotStoredError](err)
			require.True(t, ok, err)
			assert.Equal(t, []string{names[next.i]}, hung.Nodes)
			tr.eventually("it is known", func() bool {
				keep, kept := leader.group.KeepUp(), leader.group.KeptUp(next.group.ID())
				return slices.Contains(keep, other.group.ID()) && !slices.Contains(keep, next.group.ID()) && kept == 0
			})

			require.NoError(t, leader.group.HandOver(t.Context(), "a test"))
			tr.serves(next.i)
			assert.Nil(t, leader.group.KeepUp(), "another one leads")
		}
		unlock()
		tr.alike()
	}
}

// handsOverAndServes has a leader hand over to another node, and serve calls meanwhile. led: it has
// led all the time, and the error is that of the handover, or of a call.
func (n *node) handsOverAndServes(next *node) (err error, led bool) {
	p, err := n.group.Leading()
	if err != nil {
		return err, false
	}
	leads := func() bool {
		now, err := n.group.Leading()
		return err == nil && now == p
	}
	asked := make(chan error, 1)
	go func() { asked <- n.group.HandOver(n.trio.t.Context(), "a test", names[next.i]) }()
	for {
		select {
		case err := <-asked:
			return err, err == nil || leads()
		default:
			if _, err := admit(p, "k", 1<<40); err != nil {
				led := leads()
				<-asked
				return err, led
			}
		}
	}
}

// Two of three disks hang: nothing is handed over, and the leader ends rather than wait for ever.
func TestTwoOfThreeDisksHang(t *testing.T) {
	t.Parallel()
	tr, hangs := newHangingTrio(t)
	leader, r := tr.leading()
	for _, n := range tr.nodes {
		if n != leader {
			hangs[n.i].Lock()
		}
	}
	hung, ok := errors.AsType[*NotStoredError](leader.group.HandOver(t.Context(), "a test"))
	require.True(t, ok)
	assert.Len(t, hung.Nodes, 2)
	_, err := admit(r, "k", 1<<40)
	assert.ErrorIs(t, err, ErrUnknown)
	for _, n := range tr.nodes {
		if n != leader {
			hangs[n.i].Unlock()
		}
	}
	tr.alike()
}

// A disk that hangs after it was asked holds a transfer up. The leader goes on, or ends, so that
// another one is elected.
func TestADiskHangsDuringATransfer(t *testing.T) {
	t.Parallel()
	tr, hangs := newHangingTrio(t)
	for range 3 {
		leader := tr.leader()
		next := tr.nodes[(leader.i+1)%3]
		hangs[next.i].Lock()
		for range 3 { // raft takes up one transfer, and keeps the next waiting
			run := leader.group.running.Load()
			r := run.fsm.replica.Load()
			if p, err := leader.group.Leading(); err == nil {
				admit(p, "k", 1<<40) // which the other one does not store
			}
			if r.endQuietly() {
				term := run.raft.CurrentTerm()
				err := leader.group.transfer(run, r, next.group.ID(), "a test")
				// raft takes any end of the leadership for success, as when others elect
				assert.True(t, err != nil || run.raft.State() != raft.Leader || run.raft.CurrentTerm() > term)
			}
		}
		tr.serves(next.i)
		hangs[next.i].Unlock()
		tr.alike()
	}
}

// A leader that raft leaves in the middle of a transfer ends, and others elect one of them.
func TestATransferThatDoesNotEndEndsLeadership(t *testing.T) {
	t.Parallel()
	tr, _ := newHangingTrio(t)
	leader := tr.leader()
	next := tr.nodes[(leader.i+1)%3]
	run := leader.group.running.Load()
	r := run.fsm.replica.Load()
	for !r.endQuietly() {
	}
	run.endUnlessServing(r, run.raft.CurrentTerm(), next.group.ID().Node, short)
	tr.serves() // whoever is elected, perhaps the same one again
	tr.alike()
	assert.EqualValues(t, 1, leader.group.Figures().Rebuilds)
}
