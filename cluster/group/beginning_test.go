package group

import (
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"
)

// A node that asks for the time goes on following leadership: it leads again before the answer to
// what it has asked for an earlier leadership has come.
func TestLeadershipIsFollowedWhileTheTimeIsAsked(t *testing.T) {
	t.Parallel()
	tr := newTrio(t)
	var asks atomic.Pointer[node]
	asked, answer := make(chan struct{}), make(chan struct{})
	for _, n := range tr.nodes {
		n.asks = func() {
			if asks.CompareAndSwap(nil, n) {
				close(asked)
				<-answer
			}
		}
	}
	defer close(answer)
	tr.startAll()
	tr.eventually("a node asks", func() bool {
		if tr.nodes[0].group.running.Load().raft.State() == raft.Follower {
			tr.nodes[0].callElection()
		}
		return isClosed(asked)
	})
	first := asks.Load()
	other := tr.leader(first.i)
	tr.eventually("it leads again", func() bool {
		_, err := first.group.Leading()
		if err != nil {
			_ = other.group.HandOver(t.Context(), "a test", names[first.i])
		}
		return err == nil
	})
}
