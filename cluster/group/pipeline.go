package group

import (
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// AppendEntriesPipeline implements raft.Transport. Raft sends one message in a pipeline for each
// new entry or pause: a replica that is far behind would not catch up while the group waits for it.
// Without a pipeline raft sends all that is missing.
func (t transport) AppendEntriesPipeline(id raft.ServerID, at raft.ServerAddress) (raft.AppendPipeline, error) {
	if t.peers.get(id).behind(t.last()) {
		return nil, raft.ErrPipelineReplicationNotSupported
	}
	p, err := t.NetworkTransport.AppendEntriesPipeline(id, at)
	if err != nil {
		return nil, err
	}
	bounded := &boundedPipeline{p, t.patience, t.ended, id, t.peers}
	t.peers.begin(id, bounded)
	return bounded, nil
}

// boundedPipeline closes a pipeline that takes no entries for too long. In raft, what reads the
// answers ends at the first that names a later term, and a pipeline that is full then waits for it
// for ever: neither Shutdown nor a rebuild of the replica would end.
type boundedPipeline struct {
	raft.AppendPipeline
	// patience is longer than an answer may take, after which the pipeline fails by itself
	patience time.Duration
	ended    <-chan struct{} // see transport
	to       raft.ServerID
	peers    *peers
}

// Close implements raft.AppendPipeline.
func (p *boundedPipeline) Close() error {
	p.peers.end(p.to, p)
	return p.AppendPipeline.Close()
}

// AppendEntries implements raft.AppendPipeline.
func (p *boundedPipeline) AppendEntries(
	call *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	if isClosed(p.ended) {
		return nil, raft.ErrPipelineShutdown
	}
	stuck := time.AfterFunc(p.patience, func() { p.AppendPipeline.Close() })
	defer stuck.Stop()
	return p.AppendPipeline.AppendEntries(call, reply)
}

// AppendEntries implements raft.Transport. After each failure raft waits twice as long, up to 10 s,
// and a replica that is back gets nothing meanwhile: if another one ends then, the group stands
// still. So raft hears of a failure only when there is nothing to send any more, or when it has to
// do something else.
func (t transport) AppendEntries(
	id raft.ServerID, at raft.ServerAddress, call *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse,
) error {
	for {
		if isClosed(t.ended) {
			return raft.ErrTransportShutdown
		}
		err := t.NetworkTransport.AppendEntries(id, at, call, reply)
		heartbeat := len(call.Entries) == 0 && call.PrevLogEntry == 0 // raft repeats it
		if err == nil && reply.Success {
			t.peers.note(id, call.PrevLogEntry+uint64(len(call.Entries)), time.Now())
		}
		if err == nil || heartbeat || !t.again(call.Term, id) {
			return err
		}
		*reply = raft.AppendEntriesResponse{}
	}
}

// errNotSent has raft look again what a replica needs.
var errNotSent = errors.New("the replica has not answered for a while: the snapshot may be out of date")

// InstallSnapshot implements raft.Transport. It waits until the replica answers heartbeats, as raft
// would wait for up to 10 s after failures. Raft then opens the latest snapshot: this one may be
// hours old, and the log after it gone.
func (t transport) InstallSnapshot(
	id raft.ServerID, at raft.ServerAddress, call *raft.InstallSnapshotRequest, reply *raft.InstallSnapshotResponse,
	data io.Reader,
) error {
	answers := func() bool { return time.Since(t.peers.get(id).heard) <= t.patience }
	if !answers() {
		for t.again(call.Term, id) && !answers() {
		}
		return errNotSent
	}
	return t.NetworkTransport.InstallSnapshot(id, at, call, reply, data)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// mostResendPause is the longest time between attempts to send entries.
const mostResendPause = 100 * time.Millisecond

// sendAgain reports, after a short wait, whether entries of a term are still to be sent to a
// replica that could not be reached.
func (g *Group) sendAgain(run *running, term uint64, to raft.ServerID) bool {
	if !run.sleep(min(g.options.Timeout/10, mostResendPause)) {
		return false
	}
	r := run.started.Load()
	if r == nil || r.State() != raft.Leader || r.CurrentTerm() != term {
		return false
	}
	if run.transfers.Load() { // raft ends the transfer only when it can send something else
		return false
	}
	return slices.ContainsFunc(r.GetConfiguration().Configuration().Servers, func(s raft.Server) bool {
		return s.ID == to
	})
}

// peers is what is known of the other replicas.
type peers struct {
	mu sync.Mutex
	of map[raft.ServerID]peer
}

type peer struct {
	last  uint64           // index of the last entry that it has got without a pipeline
	pipe  *boundedPipeline // it had nearly all entries, and gets the others here; nil: it does not
	heard time.Time        // when it has last answered
}

// note notes that a replica has the entries up to an index; 0: it has answered a heartbeat.
func (p *peers) note(id raft.ServerID, index uint64, now time.Time) {
	p.change(id, func(of *peer) {
		of.heard = now
		if index != 0 {
			of.last, of.pipe = index, nil
		}
	})
}

// begin notes that a replica gets entries in a pipeline.
func (p *peers) begin(id raft.ServerID, pipe *boundedPipeline) {
	p.change(id, func(of *peer) { of.pipe = pipe })
}

// end notes that a pipeline has ended: the replica may lack entries.
func (p *peers) end(id raft.ServerID, pipe *boundedPipeline) {
	p.change(id, func(of *peer) {
		if of.pipe == pipe {
			of.pipe = nil
		}
	})
}

func (p *peers) change(id raft.ServerID, change func(*peer)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = make(map[raft.ServerID]peer)
	}
	of := p.of[id]
	change(&of)
	p.of[id] = of
}

func (p *peers) get(id raft.ServerID) peer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[id]
}

// behind reports whether the replica lacks more than a message before an entry.
func (p peer) behind(index uint64) bool { return p.last+mostAppended < index }

// readier reports whether a replica can take over sooner than another one: it has nearly all
// entries up to last, and has answered after since.
func (p peer) readier(than peer, last uint64, since time.Time) bool {
	ready := func(p peer) bool { return (p.pipe != nil || !p.behind(last)) && p.heard.After(since) }
	if ready(p) != ready(than) {
		return ready(p)
	}
	return p.heard.After(than.heard)
}
