package group

import (
	"time"

	"github.com/hashicorp/raft"
)

// Raft that is shut down leaves some futures without an answer: of entries, those that are
// committed and wait to be applied.

// await returns the error of a future, ErrRaftShutdown if raft has ended before it has one.
func await(f raft.Future, ended <-chan struct{}) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		return err
	case <-ended:
		return raft.ErrRaftShutdown
	}
}

// endingRaft is raft that answers for all entries.
type endingRaft struct {
	*raft.Raft
	ended <-chan struct{} // closed when raft is about to be shut down
}

// ApplyLog proposes an entry.
func (r endingRaft) ApplyLog(entry raft.Log, timeout time.Duration) raft.ApplyFuture {
	return endingFuture{r.Raft.ApplyLog(entry, timeout), r.ended}
}

type endingFuture struct {
	raft.ApplyFuture
	ended <-chan struct{}
}

// Error implements raft.Future.
func (f endingFuture) Error() error { return await(f.ApplyFuture, f.ended) }
