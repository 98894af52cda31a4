package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// leadership is what a replica notes about who leads its group and why that has changed. A line of
// the log and the figures are made of it.
type leadership struct {
	mu       sync.Mutex
	leader   string    // "": none is known
	previous string    // the one before; "": none was known since the start
	since    time.Time // when leader became what it is
	// for how long the leader was not heard when the last election was called
	silence time.Duration
	asked   bool   // the leader has asked this node to take over
	gone    string // the node whose process has ended, so that this one calls an election; "": none
	handed  string // to whom this node hands the group over, and why; "": it does not
	cutOff  bool   // fewer than a majority have answered this node while it led
	disk    error  // why the last entry could not be stored; nil: it was
	file    error  // why the last new file of the log could not be created; nil: it was
	warned  bool   // the log says that there is no leader
}

// observe notes what raft does. It is called by raft's own goroutine, in order.
func (l *leadership) observe(g *Group, o *raft.Observation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch data := o.Data.(type) {
	case raft.LeaderObservation:
		id, _ := ParseReplicaID(string(data.LeaderID))
		l.lead(g, id.Node)
	case raft.RaftState:
		switch data {
		case raft.Follower:
			l.gone = ""
		case raft.Candidate:
			g.counters.electionsCalled.Add(1)
			l.silence = time.Since(o.Raft.LastContact())
			if o.Raft.LastContact().IsZero() {
				l.silence = time.Since(l.since)
			}
		case raft.Leader:
			g.counters.electionsWon.Add(1)
			l.cutOff, l.handed = false, ""
		}
	}
}

func (l *leadership) lead(g *Group, name string) {
	if l.leader == name {
		return
	}
	if l.leader != "" {
		l.previous = l.leader
	}
	l.leader, l.since = name, time.Now()
	g.lag.reset()
	if name == "" {
		return
	}
	g.counters.leaderChanges.Add(1)
	if name != g.options.Node {
		g.log.Debug("another node leads the group", "leader", name)
	}
	if l.warned {
		l.warned = false
		g.log.Info("the group has a leader again", "leader", name)
	}
}

// warn logs that no leader is known for longer than elections take, once until there is one.
func (l *leadership) warn(g *Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leader == "" && !l.warned && time.Since(l.since) > 5*g.options.Timeout {
		l.warned = true
		g.log.Warn("the group has no leader that this node hears: its calls are refused", "before", l.previous,
			"for", time.Since(l.since).Round(time.Millisecond))
	}
}

// gained returns why this node leads.
func (l *leadership) gained(node string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch l.previous {
	case "":
		return "the group had no leader"
	case node:
		return "no other node has led since this one did"
	}
	if l.gone != "" {
		return fmt.Sprintf("the process of node %s has ended: its port refuses connections", l.gone)
	}
	if l.asked {
		return fmt.Sprintf("node %s has handed it over", l.previous)
	}
	return fmt.Sprintf("no word from node %s for %v", l.previous, l.silence.Round(time.Millisecond))
}

// lost returns why this node does not lead any more.
func (l *leadership) lost(node string, timeout time.Duration) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.handed != "":
		return l.handed
	case l.diskLocked() != nil:
		return fmt.Sprintf("the disk has failed: %v", l.diskLocked())
	case l.cutOff:
		return fmt.Sprintf("cut off: no majority of the replicas has answered for %v", timeout)
	case l.leader == node:
		return "this node was elected again: another one had called an election, as it had not heard this one"
	case l.leader != "":
		return fmt.Sprintf("node %s was elected, as others have not heard this one", l.leader)
	}
	return "another node has called an election, as it has not heard this one"
}

// without returns for how long no leader is known.
func (l *leadership) without(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leader != "" {
		return 0 // it was not heard for less than an election takes
	}
	return now.Sub(l.since)
}

func (l *leadership) setHanded(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.handed = text
}

// setFile notes whether a new file of the log could be created, which happens in the background.
func (l *leadership) setFile(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.file = err
}

// stored is called when entries were stored, or could not be.
func (g *Group) stored(took time.Duration, err error) {
	g.leadership.mu.Lock()
	g.leadership.disk = err
	g.leadership.mu.Unlock()
	if observe := g.options.ObserveSync; observe != nil && g.sync.Load() && err == nil {
		observe(took)
	}
}

// diskError returns why the disk takes no entries, nil if it does.
func (l *leadership) diskError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.diskLocked()
}

func (l *leadership) diskLocked() error { return cmp.Or(l.disk, l.file) }

// logged notes what raft logs and has no observation for.
func (l *leadership) logged(message string) {
	if message == "failed to contact quorum of nodes, stepping down" {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.cutOff = true
	}
}

// CallElection has this replica call an election now, rather than when it has waited for a leader
// for long enough. It does nothing if a leader was heard since the replica was opened: then the
// timeout says when it is gone. The other replicas refuse their votes if they hear a leader.
func (g *Group) CallElection() {
	r := g.running.Load().raft
	if r.State() != raft.Follower || !r.LastContact().IsZero() {
		return
	}
	// raft looks at once whether the leader was heard when its timeout becomes shorter
	c := r.ReloadableConfig()
	longer := c
	longer.HeartbeatTimeout++
	longer.ElectionTimeout++
	if err := errors.Join(r.ReloadConfig(longer), r.ReloadConfig(c)); err != nil {
		g.log.Warn("no election can be called", "error", err)
	}
}

// errStopping is why a replica that is closed leads no more.
var errStopping = errors.New("the node stops")

// transport notes that this node was asked to take over: only its calls for votes say so.
type transport struct {
	*raft.NetworkTransport
	snapshots  *raft.NetworkTransport // sends them: its timeout is longer
	leadership *leadership
	// patience is longer than an answer may take, after which a pipeline fails by itself
	patience time.Duration
	// again is called when entries of a term could not be sent, see sendAgain
	again func(term uint64, to raft.ServerID) bool
	last  func() uint64 // the index of the last entry here
	peers *peers
	// ended is closed when raft is about to be shut down. It may wait for a disk that hangs, and
	// must not be heard meanwhile
	ended  <-chan struct{}
	speaks func(node string) bool // see Options.Speaks
}

// ErrNotTrusted is the answer to a replica that this one does not speak with.
var ErrNotTrusted = errors.New("this replica does not speak with that one yet, or not any more")

// admits reports whether a call of another replica is answered.
func (t transport) admits(call raft.RPC) bool {
	from, ok := call.Command.(raft.WithRPCHeader)
	return ok && t.speaksWith(raft.ServerID(from.GetRPCHeader().ID))
}

func (t transport) speaksWith(replica raft.ServerID) bool {
	if t.speaks == nil {
		return true
	}
	id, err := ParseReplicaID(string(replica))
	return err == nil && t.speaks(id.Node)
}

// ask does a call to another replica. If this one does not speak with that one, or not any more
// when the answer comes, the call fails.
func (t transport) ask(id raft.ServerID, call func() error) error {
	if !t.speaksWith(id) {
		return ErrNotTrusted
	}
	if err := call(); err != nil {
		return err
	}
	if !t.speaksWith(id) {
		return ErrNotTrusted
	}
	return nil
}

// refuse answers a call that is not admitted. A snapshot has to be read before.
func refuse(call raft.RPC) {
	if call.Reader != nil {
		io.Copy(io.Discard, call.Reader)
	}
	call.Respond(nil, ErrNotTrusted)
}

// SetHeartbeatHandler implements raft.Transport: heartbeats do not come with the other calls.
func (t transport) SetHeartbeatHandler(handle func(raft.RPC)) {
	if handle == nil {
		t.NetworkTransport.SetHeartbeatHandler(nil)
		return
	}
	t.NetworkTransport.SetHeartbeatHandler(func(call raft.RPC) {
		if t.admits(call) {
			handle(call)
		} else {
			refuse(call)
		}
	})
}

func (t transport) RequestVote(
	id raft.ServerID, at raft.ServerAddress, call *raft.RequestVoteRequest, reply *raft.RequestVoteResponse,
) error {
	t.leadership.mu.Lock()
	t.leadership.asked = call.LeadershipTransfer
	t.leadership.mu.Unlock()
	return t.ask(id, func() error { return t.NetworkTransport.RequestVote(id, at, call, reply) })
}

func (t transport) RequestPreVote(
	id raft.ServerID, at raft.ServerAddress, call *raft.RequestPreVoteRequest, reply *raft.RequestPreVoteResponse,
) error {
	return t.ask(id, func() error { return t.NetworkTransport.RequestPreVote(id, at, call, reply) })
}

func (t transport) TimeoutNow(
	id raft.ServerID, at raft.ServerAddress, call *raft.TimeoutNowRequest, reply *raft.TimeoutNowResponse,
) error {
	return t.ask(id, func() error { return t.NetworkTransport.TimeoutNow(id, at, call, reply) })
}

// beginning is a leadership that begins: this node is elected, and asks what it has to know before
// it serves calls.
type beginning struct {
	// capacity 1: gets the partition, nil if leadership has ended. nil: no leadership begins
	ready  chan *Partition
	cancel context.CancelFunc
	again  bool // leadership could not be handed over
}

var noBeginning = beginning{cancel: func() {}}

// begin begins to lead in the background.
func (g *Group) begin(run *running, again bool) beginning {
	ctx, cancel := context.WithCancel(context.Background())
	b := beginning{make(chan *Partition, 1), cancel, again}
	run.work.Go(func() { b.ready <- g.barrier(ctx, run) })
	return b
}

// barrier returns the partition of a new leadership: when its entry is applied, everything before
// it is, and the leadership has a term that entries are checked against. It returns nil if
// leadership has ended.
func (g *Group) barrier(ctx context.Context, run *running) *Partition {
	r := run.fsm.replica.Load()
	entry := make([]byte, headerSize)
	header{kind: entryBarrier, proposer: r.id, first: 1}.put(entry)
	f := run.raft.ApplyLog(raft.Log{Data: entry}, 0)
	if run.await(f) != nil {
		return nil // run.notify says so
	}
	c, ok := f.Response().(barrierResult)
	if !ok {
		return nil
	}
	still := func() bool {
		return ctx.Err() == nil && run.raft.State() == raft.Leader && !isClosed(g.quit) && r.why() == nil
	}
	used := g.requirePolicies(run, r, still)
	now := g.time.begin(func(log int64) (int64, bool) { return g.options.AskTime(log, still) })
	if !still() {
		return nil
	}
	return &Partition{
		Replica: r, Group: g.options.Number, Clock: now, term: c.term,
		ended: make(chan struct{}), most: 2 * g.options.Patience, used: used, begun: f.Index(),
	}
}

// lead serves calls on the partition of a leadership that has begun, and reports whether it does.
func (g *Group) lead(run *running, p *Partition) bool {
	if p == nil || p.Replica != run.fsm.replica.Load() || p.term != run.raft.CurrentTerm() ||
		run.raft.State() != raft.Leader {
		return false
	}
	if g.options.Begun != nil {
		g.options.Begun(p)
	}
	run.peers.begin(p.term, p.begun)
	if !p.lead(p) {
		close(p.ended)
		return false
	}
	run.transfers.Store(false)
	p.beat() // the others learn the time
	g.log.Info("this node leads the group", "term", p.term, "because", g.leadership.gained(g.options.Node))
	g.noteChange()
	return true
}
