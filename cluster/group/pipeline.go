package group

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// AppendEntriesPipeline implements raft.Transport. Raft sends one message in a pipeline for each
// new entry or pause: a replica that is far behind would not catch up while the group waits for it.
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

// AppendEntries implements raft.Transport.
func (t transport) AppendEntries(
	id raft.ServerID, at raft.ServerAddress, call *raft.AppendEntriesRequest, reply *raft.AppendEntriesResponse,
) error {
	err := t.NetworkTransport.AppendEntries(id, at, call, reply)
	heartbeat := len(call.Entries) == 0 && call.PrevLogEntry == 0
	if err == nil && reply.Success && !heartbeat {
		t.sent.note(id, call.PrevLogEntry+uint64(len(call.Entries)))
	}
	return err
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
