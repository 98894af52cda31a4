package group

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
	p := &boundedPipeline{&fullPipeline{closed: make(chan struct{})}, time.Millisecond, nil, "a", &peers{}}
	_, err := p.AppendEntries(nil, nil)
	assert.ErrorIs(t, err, raft.ErrPipelineShutdown)
}

// transport returns a transport of a node that runs.
func (n *node) transport(patience time.Duration, again func(uint64, raft.ServerID) bool, p *peers) transport {
	run := n.group.running.Load()
	return transport{run.trans, &n.group.leadership, patience, again, run.raft.LastIndex, p, nil}
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
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax},
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
			p.note(to, 0, time.Now())
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
	p.note("a", 1000-mostAppended-1, time.Time{})
	_, err = tr.AppendEntriesPipeline("a", "a")
	assert.Equal(t, raft.ErrPipelineReplicationNotSupported, err)
	assert.True(t, p.get("a").behind(1000))
	p.note("a", 1000-mostAppended, time.Time{})
	p.note("a", 0, time.Time{}) // a heartbeat
	assert.False(t, p.get("a").behind(1000))
	assert.True(t, p.get("b").behind(1000))
}

// Leadership goes to a replica that has nearly all entries and answers, rather than to one that
// does not.
func TestTheHeirIsReadyAndThere(t *testing.T) {
	now := time.Now()
	var p peers
	for _, id := range []raft.ServerID{"dead", "late", "ready", "piped"} {
		p.note(id, 1000, now)
	}
	p.note("dead", 1000, now.Add(-time.Minute))
	p.note("late", 900, now.Add(time.Second))
	p.note("piped", 900, now)
	pipe := boundedPipeline{&fullPipeline{closed: make(chan struct{})}, 0, nil, "piped", &p}
	p.begin("piped", &pipe)
	better := func(a, b raft.ServerID) bool {
		return p.get(a).readier(p.get(b), 1000, now.Add(-time.Second))
	}
	for _, ready := range []raft.ServerID{"ready", "piped"} {
		for _, other := range []raft.ServerID{"dead", "late", "unknown"} {
			assert.True(t, better(ready, other), "%s, %s", ready, other)
			assert.False(t, better(other, ready), "%s, %s", other, ready)
		}
	}
	assert.True(t, better("late", "dead"), "the one that answers")

	next := boundedPipeline{&fullPipeline{closed: make(chan struct{})}, 0, nil, "piped", &p}
	p.begin("piped", &next)
	pipe.Close()
	assert.True(t, better("piped", "late"), "an earlier pipeline has ended")
	next.Close()
	assert.True(t, better("ready", "piped"), "it may have been away since, and lack entries")
	assert.True(t, better("late", "piped"))
}

// A replica whose disk hangs does not keep all entries that its leader sends again and again.
func TestEntriesThatNobodyWaitsForAreDropped(t *testing.T) {
	p := prefixed{transport{patience: time.Minute}, nil}
	answers := make(chan raft.RPCResponse, 3)
	call := func(command any, since time.Time) waiting {
		return waiting{raft.RPC{Command: command, RespChan: answers}, since}
	}
	now := time.Now()
	late := now.Add(-2 * time.Minute)
	left := p.dropLate([]waiting{
		call(&raft.RequestVoteRequest{}, late), call(&raft.AppendEntriesRequest{Term: 1}, late),
		call(&raft.AppendEntriesRequest{Term: 2}, now), call(&raft.InstallSnapshotRequest{}, late),
	})
	require.Len(t, left, 3)
	assert.Equal(t, &raft.AppendEntriesRequest{Term: 2}, left[1].call.Command, "the others stay, in order")
	require.Len(t, answers, 1)
	assert.Equal(t, errLate, (<-answers).Error)
}
