package group

import (
	"errors"
	"net"
	"slices"
	"syscall"
	"time"

	"github.com/hashicorp/raft"
)

// A process that ends closes its connections, and its port refuses new ones. Then the group need
// not wait for the timeout: another replica calls an election at once. The timeout is for leaders
// that cannot be reached, of which nobody knows whether they have ended.

// watched is a connection from another replica. It tells when the other end has closed it.
type watched struct {
	net.Conn
	ended chan<- struct{} // capacity 1
}

func (w watched) Read(b []byte) (int, error) {
	n, err := w.Conn.Read(b)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		signal(w.ended)
	}
	return n, err
}

// watch looks after the leader whenever a connection from another replica has ended, until raft
// ends.
func (g *Group) watch(run *running, connection <-chan struct{}) {
	for {
		select {
		case <-run.ended:
			return
		case <-connection:
			if leader, gone := g.leaderGone(run); gone {
				g.takeOver(run, leader)
			}
		}
	}
}

// leaderGone reports whether the process of the leader has ended: its port refuses connections.
func (g *Group) leaderGone(run *running) (leader ReplicaID, gone bool) {
	_, server := run.raft.LeaderWithID()
	leader, err := ParseReplicaID(string(server))
	if err != nil || leader == g.options.id() {
		return leader, false
	}
	conn, err := run.layer.Dial(leader.Node, leader.Instance, g.options.Timeout/4)
	if err == nil {
		conn.Close()
	}
	return leader, errors.Is(err, syscall.ECONNREFUSED)
}

// takeOver calls an election unless a leader is heard meanwhile. The replicas wait for different
// times, so that they do not all vote for themselves.
func (g *Group) takeOver(run *running, leader ReplicaID) {
	step := g.options.Timeout / 10 // a leader is heard more often
	var others []string
	for _, s := range serversOf(run) {
		if s.Voter && s.ID != leader {
			others = append(others, s.ID.String())
		}
	}
	slices.Sort(others)
	rank := slices.Index(others, g.options.id().String())
	if rank < 0 || !run.sleep(step/2) {
		return // its last entries may still be on their way through raft
	}
	begun := time.Now()
	if !run.sleep(step*time.Duration(1+rank)) || run.raft.State() != raft.Follower ||
		run.raft.LastContact().After(begun) {
		return
	}
	g.leadership.mu.Lock()
	g.leadership.gone = leader.Node
	g.leadership.mu.Unlock()
	id := []byte(g.options.id().String())
	call := raft.RPC{
		Command: &raft.TimeoutNowRequest{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: id, Addr: id},
		},
		RespChan: make(chan raft.RPCResponse, 1),
	}
	select {
	case run.calls <- call:
	case <-run.ended:
	}
}

// sleep reports whether raft still runs after a time.
func (run *running) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-run.ended:
		return false
	}
}

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

func (run *running) result(f raft.ApplyFuture) error {
	if err := run.await(f); err != nil {
		return err
	}
	err, _ := f.Response().(error)
	return err
}
