package resp

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/internal/clock"
	"rlserver/resp/command"
	"rlserver/resp/commands/clustering"
	"rlserver/resp/forward"
	"rlserver/resp/waitqueue"
	"rlserver/resp/wire"
)

// A call runs on the partition of its keys' slot: an engine, its journal and its clock. Without a
// cluster a server has one partition for all slots. A node of a cluster has one for each group of
// slots that it leads, and one without keys for calls without keys.

// Partition is a group of slots as long as this node leads it.
type Partition struct {
	Engine *engine.Engine
	Clock  *clock.Clock
	Leadership
}

// Leadership is the time for which this node leads a group.
type Leadership interface {
	// Wait returns nil when what calls have changed or seen is replicated. After an error the
	// changes may be lost.
	Wait(engine.Position) error
	// Ask begins what wait ends, so that a client can wait for several groups at once.
	Ask() (wait func() error)
	Ended() <-chan struct{} // closed when the node no longer leads
}

// Cluster is the cluster of which this server is a node.
type Cluster interface {
	command.Cluster
	// Groups returns the number of groups that share the slots; 0: the cluster has not been formed
	// yet.
	Groups() int
	// Lead returns the partition of a group if this node leads it. Otherwise the error is a
	// *slot.MovedError or slot.ErrNoLeader.
	Lead(group int) (Partition, error)
	// Await is Lead, but waits for a leader up to the hold time, or until the context ends.
	Await(ctx context.Context, group int) (Partition, error)
	// ChangeUsers applies an encoded change of the users, see Server.ApplyUsers, on all nodes. It
	// returns how many were deleted. The error is the text of a reply.
	ChangeUsers(change []byte) (deleted int, err error)
	// Wanted returns a function that reports whether another node still waits for its calls of an
	// epoch, see forward.Nodes; nil: it always does.
	Wanted(epoch string) func() bool
	// OtherNodes returns the names of the other nodes that are heard.
	OtherNodes() []string
	forward.Nodes
}

// partition is what calls run on: an engine with its clock, in env; the queues of those who wait;
// and what their replies wait for.
type partition struct {
	env     *command.Env
	queues  *waitqueue.Queues
	journal journal         // nil: replies depend on nothing
	advises bool            // its errors say whether a call may be sent again
	ended   <-chan struct{} // closed when the partition is no longer led here; nil: it always is
	lead    Leadership      // of a group
	group   int             // number of the group; -1: none
	groups  int             // how many groups the slots are divided into
}

// has reports whether the keys of a slot are here.
func (p *partition) has(at int) bool { return p.group >= 0 && slot.Group(at, p.groups) == p.group }

// replicated is the journal of a group that this node leads: replies wait until a majority has the
// changes.
type replicated struct {
	Leadership
	server *Server
	group  int
}

func (j *replicated) Ask(engine.Position) func() error     { return j.Leadership.Ask() }
func (*replicated) Unreadable(engine.Position) error       { return nil }
func (j *replicated) Instead(m mark, _ error) engine.Error { return j.server.uncertain(j.group, m) }

// partitionOf returns the partition of a group that this node leads, which it creates if necessary.
func (s *Server) partitionOf(group int, led Partition) *partition {
	if p := s.led[group].Load(); p != nil && p.lead == led.Leadership {
		return p
	}
	s.leading.Lock()
	defer s.leading.Unlock()
	if p := s.led[group].Load(); p != nil && p.lead == led.Leadership {
		return p
	}
	env := s.Env
	p := &partition{
		env: &env, queues: new(waitqueue.Queues), group: group, lead: led.Leadership, ended: led.Ended(),
		groups: s.cluster.Groups(), journal: &replicated{led.Leadership, s, group}, advises: true,
	}
	env.Engine, env.Time, env.Waiting, env.Ended = led.Engine, led.Clock, p.queues, p.ended
	p.queues.Init(led.Engine, led.Clock, s.executor, s.changesPaused)
	s.led[group].Store(p)
	go func() {
		<-p.ended
		p.queues.Fail()
		s.endShards(p.group)
		s.listener.Forget()
		s.led[group].CompareAndSwap(p, nil)
	}()
	return p
}

const (
	errClusterNo = engine.Error("CLUSTERDOWN The cluster is down")
	// errUnbound is the error of Redis for a slot that no node serves.
	errUnbound       = engine.Error("CLUSTERDOWN Hash slot not served")
	errLeaderChanged = waitqueue.ErrMoved
	errOutcomeWithID = engine.Error(
		"TRYAGAIN another node begins to lead this slot: send the call again, its ID counts once")
	errUncertain = engine.Error(
		"UNCERTAIN another node begins to lead this slot: the call may have been carried out or not. A permit may " +
			"be spent that was not granted. Sent again, the call may count twice")
)

type partitionTx struct {
	partition *partition
	tx        *engine.Tx
}

// away is what a session needs for calls that other nodes run; unused without a cluster.
type away struct {
	calls  forward.Client // forwards calls to other nodes
	as     forward.Caller // caller of the forwarded batch
	target forward.Call   // target of a call for which enter has returned errElsewhere
	node   forNode        // state of a session for another node
}

// use makes the following calls run on a partition.
func (s *session) use(p *partition) {
	if s.at == p {
		return
	}
	if s.txs == nil {
		s.txs = map[int]partitionTx{s.at.group: {s.at, s.Tx}}
	}
	found := s.txs[p.group]
	if found.partition != p {
		found = partitionTx{p, p.env.Engine.NewTx()}
		found.tx.Listener = s
		s.txs[p.group] = found
	}
	s.at, s.Tx, s.Env = p, found.tx, p.env
}

// enterSlot makes a call run on the partition of a slot. If pass is set, the call may run on
// another node: then the error is errElsewhere.
func (s *session) enterSlot(at int, pass bool) error {
	c, cluster := &s.away, s.server.cluster
	groups := cluster.Groups()
	switch {
	case groups > 0:
	case s.role == forOtherNode:
		c.node.refused = true
		return errNotHere
	default:
		return errClusterNo
	}
	group := slot.Group(at, groups)
	if s.role == forOtherNode {
		return s.enterForNode(group)
	}
	if node := c.calls.Node(group); node != "" {
		c.target = forward.Call{Node: node, Group: group}
		return errElsewhere
	}
	shared, err := s.awaitLeader(group)
	if moved := (*slot.MovedError)(nil); errors.As(err, &moved) {
		if pass {
			c.target = forward.Call{Node: moved.Node, Group: group}
			return errElsewhere
		}
		return engine.Error("MOVED " + strconv.Itoa(at) + " " + moved.AddressFor(s.TLS()))
	}
	if err != nil {
		return errUnbound
	}
	s.use(s.server.partitionOf(group, shared))
	return nil
}

// awaitLeader is Lead. If an election is on, it waits for its end.
func (s *session) awaitLeader(group int) (Partition, error) {
	shared, err := s.server.cluster.Lead(group)
	if err == slot.ErrNoLeader {
		s.flushBefore() // the replies so far need not wait
		s.group = s.group[:0]
		s.Hasher.Reset()
		release := s.server.Stats.Group(group).Hold()
		ctx, cancel := context.WithDeadline(context.Background(), s.away.calls.HeldUntil())
		defer cancel()
		shared, err = s.server.cluster.Await(ctx, group)
		release(err == slot.ErrNoLeader)
	}
	return shared, err
}

// enterTransaction makes EXEC run on the partition of its keys. It records whether watched keys
// have moved to another node, and the error if the transaction cannot run. It returns errElsewhere
// if another node has to run the transaction.
func (s *session) enterTransaction() (err error) {
	c, t := &s.away, &s.transaction
	t.aborted, t.refusal = false, nil
	group, here, elsewhere := s.watches()
	switch {
	case t.slot >= 0 && (here || elsewhere) && slot.Group(t.slot, s.server.cluster.Groups()) != group:
		err = clustering.ErrCrossSlot
	case t.slot >= 0:
		err = s.enterSlot(t.slot, s.role == proxied || t.passes)
		t.aborted = here && s.watch != s.at || elsewhere && err == nil
	case elsewhere:
		c.target = forward.Call{Group: group}
		err = errElsewhere
	case here:
		s.use(s.watch)
	}
	if err == errElsewhere && !here {
		return err
	}
	if t.aborted = t.aborted || err == errElsewhere; !t.aborted {
		t.refusal = err
	}
	return nil
}

// watchesHere records the partition of watched keys. All of them must be in one partition.
func (s *session) watchesHere() error {
	switch group, here, elsewhere := s.watches(); {
	case (here || elsewhere) && group != s.at.group:
		return clustering.ErrCrossSlot
	case elsewhere || here && s.watch != s.at:
		return errLeaderChanged
	}
	s.watch = s.at
	return nil
}

// watches reports whether keys are watched here or on another node, and their group.
func (s *session) watches() (group int, here, elsewhere bool) {
	group, elsewhere = s.away.calls.Watches()
	if here = len(s.watching.Keys(nil)) > 0; here {
		group = s.watch.group
	}
	return group, here, elsewhere
}

// failIfEnded fails a waiting call that was added to its queues after the leadership ended.
func (s *session) failIfEnded() {
	select {
	case <-s.at.ended:
		s.at.queues.Fail()
	default:
	}
}

// Keyspaces implements command.Server.
func (s *Server) Keyspaces() (list []command.Keyspace) {
	for _, p := range s.partitions() {
		if p.group >= 0 {
			list = append(list, command.Keyspace{Group: p.group, Engine: p.env.Engine, Time: p.env.Time})
		}
	}
	return list
}

// runOn runs a command on one partition, and returns its reply after removing it from the buffer.
func (s *session) runOn(p *command.Prepared, on *partition) (reply []byte) {
	s.use(on)
	start := len(s.Reply.B)
	if p.Command.Flags&command.Stepwise != 0 && s.Env.Engine.Holds.Late() > 0 {
		return []byte("-" + command.ErrBusy + "\r\n")
	}
	for p.WantsAll() {
		if !s.Tx.BeginUnlessHeld(s.Env.Clock(), s.DB, nil, true, p.Command.Flags&command.Write != 0) {
			return []byte("-" + command.ErrBusy + "\r\n")
		}
		if !s.isPaused(p) {
			break
		}
		s.Tx.End() // a pause has begun since the call was checked, or ran on another group
		if !s.awaitPause(p) || s.GivenUp() {
			s.closing = true
			return nil // the client has disconnected
		}
	}
	if s.GivenUp() { // while it waited for the locks
		s.away.node.refused = true
		s.ReplyError(string(errNotHere))
	} else {
		s.Run(p, nil)
	}
	s.See(max(1, s.Tx.End())) // FLUSHALL of an empty group needs a leader as well
	reply = bytes.Clone(s.Reply.B[start:])
	s.Reply.B = s.Reply.B[:start]
	return reply
}

// retryBusy is the time between two attempts of a call that has run on other groups.
const retryBusy = 20 * time.Millisecond

// runOnGroups runs a command on all groups that this node leads and, for a client of the proxy
// port, on all others. It waits for elections: a group without a leader would be left out silently.
func (s *session) runOnGroups(p command.Prepared) {
	// CLIENT PAUSE may begin in between, and its wait reads input
	p.Words = command.CloneWords(p.Words)
	everywhere, find := s.role == proxied, s.awaitLeader
	if everywhere {
		s.flushBefore()
		find = s.server.cluster.Lead
	}
	led := map[int]*partition{-1: s.server.home}
	j := command.Merger{Words: p.Words, Reply: &s.Reply, Random: s.Random}
	for group := range s.server.cluster.Groups() {
		shared, err := find(group)
		s.group = append(s.group[:0], p)
		if err == nil {
			led[group] = s.server.partitionOf(group, shared)
		} else if err == slot.ErrNoLeader && !everywhere {
			s.reject(p.Command, errUnbound)
			return
		}
		if err == nil || everywhere {
			j.Groups = append(j.Groups, group)
		}
	}
	m := mark{start: len(s.Reply.B), all: true, changed: p.Command.Flags&command.Changing != 0}
	j.On = func(group int, words [][]byte) wire.Value {
		if led[group] == nil {
			return wire.ParseValue(s.passOnGroup(group, words, m))
		}
		one := p
		one.Words = words
		return wire.ParseValue(s.runOn(&one, led[group]))
	}
	j.Keys = func(group int) wire.Value {
		switch {
		case led[group] == nil:
			return wire.ParseValue(s.passOnGroup(group, [][]byte{[]byte("DBSIZE")}, m))
		case led[group].env.Engine.Holds.Late() > 0:
			return wire.ParseValue([]byte("-" + command.ErrBusy + "\r\n"))
		}
		keys, _ := led[group].env.Engine.Size(s.DB)
		return wire.Value{Kind: ':', Integer: int64(keys)}
	}
	j.Pause = func() bool {
		s.closing = s.guard.PauseFor(retryBusy) != nil
		return !s.closing
	}
	p.Command.Merge(&j)
	m.end = len(s.Reply.B)
	s.marks = append(s.marks, m)
	s.use(s.server.home)
	s.group = append(s.group[:0], p) // a flush has cleared it
}
