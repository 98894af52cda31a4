package group

import (
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// AppendEntriesPipeline implements raft.Transport. Raft sends one message in a pipeline for each new
// entry or pause: a replica that is far behind would not catch up while the group waits for it.
// Without a pipeline raft sends all that is missing.
func (t transport) AppendEntriesPipeline(id raft.ServerID, at raft.ServerAddress) (raft.AppendPipeline, error) {
	if t.sent.behind(id, t.last()) {
		return nil, raft.ErrPipelineReplicationNotSupported
	}
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
		if err == nil && reply.Success && !heartbeat {
			t.sent.note(id, call.PrevLogEntry+uint64(len(call.Entries)))
		}
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

// sent is the index of the last entry that each replica has got without a pipeline.
type sent struct {
	mu   sync.Mutex
	last map[raft.ServerID]uint64
}

func (s *sent) note(id raft.ServerID, index uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = make(map[raft.ServerID]uint64)
	}
	s.last[id] = index
}

// behind reports whether a replica lacks more than a message before an entry.
func (s *sent) behind(id raft.ServerID, index uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last[id]+mostAppended < index
}
