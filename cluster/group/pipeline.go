package group

import (
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// AppendEntriesPipeline implements raft.Transport.
func (t transport) AppendEntriesPipeline(id raft.ServerID, at raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := t.NetworkTransport.AppendEntriesPipeline(id, at)
	if err != nil {
		return nil, err
	}
	return &boundedPipeline{p, t.patience}, nil
}

// boundedPipeline closes a pipeline that takes no entries for too long. In raft, what reads the
// answers ends at the first that names a later term, and a pipeline that is full then waits for it
// for ever: neither Shutdown nor a rebuild of the replica would end.
type boundedPipeline struct {
	raft.AppendPipeline
	// patience is longer than an answer may take, after which the pipeline fails by itself
	patience time.Duration
}

// AppendEntries implements raft.AppendPipeline.
func (p *boundedPipeline) AppendEntries(
	call *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse,
) (raft.AppendFuture, error) {
	stuck := time.AfterFunc(p.patience, func() { p.AppendPipeline.Close() })
	defer stuck.Stop()
	return p.AppendPipeline.AppendEntries(call, reply)
}

// AppendEntries implements raft.Transport. After each failure raft waits twice as long, up to 10 s,
// and a replica that is back gets nothing meanwhile: if another one ends then, the group stands
// still. So raft hears of a failure only when there is nothing to send any more.
func (t transport) AppendEntries(
	id raft.ServerID, at raft.ServerAddress, call *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse,
) error {
	for {
		err := t.NetworkTransport.AppendEntries(id, at, call, reply)
		heartbeat := len(call.Entries) == 0 && call.PrevLogEntry == 0 // raft tries these often enough
		if err == nil || heartbeat || !t.again(call.Term, id) {
			return err
		}
	}
}

// sendAgain reports, after a short wait, whether entries of a term are still to be sent to a
// replica that could not be reached.
func (g *Group) sendAgain(run *running, term uint64, to raft.ServerID) bool {
	if !run.sleep(g.options.Timeout / 10) {
		return false
	}
	r := run.started.Load()
	if r == nil || r.State() != raft.Leader || r.CurrentTerm() != term {
		return false
	}
	return slices.ContainsFunc(r.GetConfiguration().Configuration().Servers, func(s raft.Server) bool {
		return s.ID == to
	})
}
