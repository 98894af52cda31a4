package group

import "github.com/hashicorp/raft"

// Raft that is shut down leaves some futures without an answer: of entries, those that are
// committed and wait to be applied.

// await returns the error of a future, ErrRaftShutdown if raft has ended before it has one.
func (run *running) await(f raft.Future) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		return err
	case <-run.ended:
		return raft.ErrRaftShutdown
	}
}

// result returns the error of an entry.
func (run *running) result(f raft.ApplyFuture) error {
	if err := run.await(f); err != nil {
		return err
	}
	err, _ := f.Response().(error)
	return err
}
