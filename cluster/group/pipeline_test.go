package group

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
)

// fullPipeline is a pipeline whose answers nobody reads any more.
type fullPipeline struct {
	raft.AppendPipeline
	closed chan struct{}
}

func (p *fullPipeline) AppendEntries(
	*raft.AppendEntriesRequest, *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	<-p.closed
	return nil, raft.ErrPipelineShutdown
}

func (p *fullPipeline) Close() error {
	close(p.closed)
	return nil
}

func TestAPipelineThatIsStuckIsClosed(t *testing.T) {
	p := &boundedPipeline{
		AppendPipeline: &fullPipeline{closed: make(chan struct{})}, of: transport{patience: time.Millisecond},
	}
	_, err := p.AppendEntries(nil, nil)
	assert.ErrorIs(t, err, raft.ErrPipelineShutdown)
}

// transport returns a transport of a node that runs.
func (n *node) transport(patience time.Duration, again func(uint64, raft.ServerID) bool, p *peers) transport {
	run := n.group.running.Load()
	return transport{run.trans, run.snapshots, &n.group.leadership, patience, again, run.raft.LastIndex, p, nil, nil}
}

// Entries that a replica does not get, as it cannot be reached, are sent again as long as that is
// of use.
func TestEntriesAreSentAgain(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	leader := tr.leader()
	run := leader.group.running.Load()
	other := tr.nodes[(leader.i+1)%len(tr.nodes)].group.ID().String()
	send := func(term uint64, again func(uint64, raft.ServerID) bool) error {
		call := raft.AppendEntriesRequest{
			RPCHeader: leader.header(),
			Term:      term, PrevLogEntry: 1, PrevLogTerm: 1,
		}
		var reply raft.AppendEntriesResponse
		return leader.transport(time.Second, again, &peers{}).AppendEntries(
			raft.ServerID(other), raft.ServerAddress(other), &call, &reply)
	}
	term := run.raft.CurrentTerm()
	tr.isolate((leader.i + 1) % len(tr.nodes))
	tries := 0
	assert.NoError(t, send(term, func(_ uint64, to raft.ServerID) bool {
		if tries++; tries == 3 {
			tr.heal()
		}
		return assert.Equal(t, raft.ServerID(other), to)
	}))
	assert.GreaterOrEqual(t, tries, 3)

	g := leader.group
	assert.True(t, g.sendAgain(run, term, raft.ServerID(other)))
	assert.False(t, g.sendAgain(run, term-1, raft.ServerID(other)), "of an earlier leadership")
	assert.False(t, g.sendAgain(run, term, "gone/0000000000000001"), "no member any more")
	run.transfers.Store(true)
	assert.False(t, g.sendAgain(run, term, raft.ServerID(other)), "leadership is handed over")
	run.transfers.Store(false)
	leader.stop()
	assert.False(t, g.sendAgain(run, term, raft.ServerID(other)), "the node stops")
}

// A snapshot is sent to a replica that answers.
func TestASnapshotWaitsForAnAnswer(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	leader := tr.leader()
	other := tr.nodes[(leader.i+1)%len(tr.nodes)].group.ID().String()
	var p peers
	send := func(again func(uint64, raft.ServerID) bool) error {
		return leader.transport(time.Minute, again, &p).InstallSnapshot(raft.ServerID(other), raft.ServerAddress(other),
			&raft.InstallSnapshotRequest{}, &raft.InstallSnapshotResponse{}, strings.NewReader(""))
	}
	tries := 0
	err := send(func(_ uint64, to raft.ServerID) bool {
		if tries++; tries == 3 {
			p.answered(to, time.Now())
		}
		return true
	})
	assert.Equal(t, 3, tries)
	assert.Equal(t, errNotSent, err, "raft opens the latest snapshot")
	err = send(func(uint64, raft.ServerID) bool { return assert.Fail(t, "it answers") })
	assert.NotEqual(t, errNotSent, err)
	p = peers{}
	err = send(func(uint64, raft.ServerID) bool { tries++; return false })
	assert.Equal(t, errNotSent, err)
	assert.Equal(t, 4, tries, "raft has something else to do")
}

// A pipeline begins when a replica has nearly all entries.
func TestAPipelineBeginsWhenAReplicaHasCaughtUp(t *testing.T) {
	var p peers
	tr := transport{last: func() uint64 { return 1000 }, peers: &p}
	_, err := tr.AppendEntriesPipeline("a", "a")
	assert.Equal(t, raft.ErrPipelineReplicationNotSupported, err, "nothing was sent yet")
	p.stored("a", 1, 1000-maxAppended-1, time.Time{})
	_, err = tr.AppendEntriesPipeline("a", "a")
	assert.Equal(t, raft.ErrPipelineReplicationNotSupported, err)
	assert.True(t, p.behind("a", 1000))
	p.stored("a", 1, 1000-maxAppended, time.Time{})
	p.answered("a", time.Time{}) // a heartbeat
	assert.False(t, p.behind("a", 1000))
	assert.True(t, p.behind("b", 1000))
}

// A replica keeps up while it acknowledges the entries of this leadership, in time.
func TestWhoKeepsUp(t *testing.T) {
	var p peers
	now := time.Now()
	keeps := func() bool { return p.keepsUp("a", now, time.Second) }
	kept := func() time.Duration { return p.keptUp("a", now, time.Second) }
	p.stored("a", 1, 10, now)
	p.begin(2, 12)
	assert.False(t, keeps(), "it has acknowledged entries of another leader")
	p.stored("a", 2, 11, now)
	assert.False(t, keeps(), "it had them before")
	assert.False(t, p.has("a", 2, 12))
	p.stored("a", 2, 12, now)
	assert.True(t, keeps())
	assert.True(t, p.has("a", 2, 12))
	assert.False(t, p.has("a", 3, 12))
	for i := range 5 { // an entry a second
		p.tick(12+uint64(i), now, time.Second)
		p.stored("a", 2, 12+uint64(i), now)
		now = now.Add(time.Second)
	}
	assert.Equal(t, 5*time.Second, kept())
	p.tick(17, now, time.Second)
	now = now.Add(time.Second)
	assert.True(t, keeps(), "it may be on its way")
	p.answered("a", now)
	now = now.Add(time.Millisecond)
	assert.False(t, keeps(), "its disk hangs, and it answers")
	p.tick(18, now, time.Second)
	assert.Zero(t, kept())
	p.stored("a", 2, 18, now)
	assert.True(t, keeps())
	p.tick(18, now, time.Second)
	assert.Zero(t, kept(), "from now on")
	assert.Equal(t, time.Second, p.keptUp("a", now.Add(time.Second), time.Second))
	p.begin(4, 20)
	assert.False(t, keeps())
	assert.Zero(t, kept())
}

// What a transfer that has failed leaves behind does not outlive the leadership.
func TestAFailedTransferIsOverWhenLeadershipEnds(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	tr.startAll()
	leader := tr.leader()
	run := leader.group.running.Load()
	run.transfers.Store(true)
	assert.NoError(t, run.await(run.raft.LeadershipTransfer()))
	tr.eventually("the transfer is over", func() bool {
		return leader.group.running.Load() != run || !run.transfers.Load()
	})
}

func TestPeersForgetReplicasThatWereRemoved(t *testing.T) {
	var p peers
	stays := ReplicaID{"a", 1}
	p.answered(raft.ServerID(stays.String()), time.Now())
	p.answered("b/0000000000000002", time.Now())
	p.prune([]Server{{ID: stays}})
	assert.Len(t, p.of, 1)
	assert.True(t, p.answeredWithin(raft.ServerID(stays.String()), time.Hour))
}
