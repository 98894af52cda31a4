package group

import (
	"errors"
	"io"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// AppendEntriesPipeline implements raft.Transport. Raft sends one message in a pipeline for each
// new entry or pause: a replica that is far behind would not catch up while the group waits for it.
// Without a pipeline raft sends all that is missing.
func (t transport) AppendEntriesPipeline(id raft.ServerID, at raft.ServerAddress) (raft.AppendPipeline, error) {
	if t.peers.behind(id, t.last()) {
		return nil, raft.ErrPipelineReplicationNotSupported
	}
	if !t.speaksWith(id) {
		return nil, ErrNotTrusted
	}
	p, err := t.NetworkTransport.AppendEntriesPipeline(id, at)
	if err != nil {
		return nil, err
	}
	bounded := &boundedPipeline{
		AppendPipeline: p, patience: t.patience, ended: t.ended,
		speaks:  func() bool { return t.speaksWith(id) },
		answers: make(chan raft.AppendFuture), closed: make(chan struct{}),
	}
	go bounded.pass(func(call *raft.AppendEntriesRequest) {
		t.peers.stored(id, call.Term, call.PrevLogEntry+uint64(len(call.Entries)), time.Now())
	})
	return bounded, nil
}

// boundedPipeline closes a pipeline that takes no entries for too long. In raft, what reads the
// answers ends at the first that names a later term, and a pipeline that is full then waits for it
// for ever: neither Shutdown nor a rebuild of the replica would end. It also notes what is stored.
type boundedPipeline struct {
	raft.AppendPipeline
	// patience is longer than an answer may take, after which the pipeline fails by itself
	patience time.Duration
	ended    <-chan struct{} // see transport
	speaks   func() bool     // whether this replica speaks with the other one
	answers  chan raft.AppendFuture
	closed   chan struct{} // by Close, which raft calls once
}

// Consumer implements raft.AppendPipeline.
func (p *boundedPipeline) Consumer() <-chan raft.AppendFuture { return p.answers }

// pass passes answers on to raft until the pipeline is closed. stored is called with the calls
// whose entries are stored.
func (p *boundedPipeline) pass(stored func(*raft.AppendEntriesRequest)) {
	for {
		select {
		case answer := <-p.AppendPipeline.Consumer():
			if !p.speaks() {
				continue
			}
			if answer.Error() == nil && answer.Response().Success {
				stored(answer.Request())
			}
			select {
			case p.answers <- answer:
			case <-p.closed:
				return
			}
		case <-p.closed:
			return
		}
	}
}

// Close implements raft.AppendPipeline.
func (p *boundedPipeline) Close() error {
	close(p.closed)
	return p.AppendPipeline.Close()
}

// AppendEntries implements raft.AppendPipeline.
func (p *boundedPipeline) AppendEntries(
	call *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	if isClosed(p.ended) || !p.speaks() {
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
		err := t.ask(id, func() error { return t.NetworkTransport.AppendEntries(id, at, call, reply) })
		heartbeat := len(call.Entries) == 0 && call.PrevLogEntry == 0 // raft repeats it
		switch {
		case err != nil || !reply.Success:
		case heartbeat:
			t.peers.answered(id, time.Now())
		default:
			t.peers.stored(id, call.Term, call.PrevLogEntry+uint64(len(call.Entries)), time.Now())
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
	answers := func() bool { return t.peers.answeredWithin(id, t.patience) }
	if !answers() {
		for t.again(call.Term, id) && !answers() {
		}
		return errNotSent
	}
	return t.ask(id, func() error { return t.NetworkTransport.InstallSnapshot(id, at, call, reply, data) })
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// maxResendPause is the longest time between attempts to send entries.
const maxResendPause = 100 * time.Millisecond

// sendAgain reports, after a short wait, whether entries of a term are still to be sent to a
// replica that could not be reached.
func (g *Group) sendAgain(run *running, term uint64, to raft.ServerID) bool {
	if !run.sleep(min(g.options.Timeout/10, maxResendPause)) {
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
