package resp

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"rlserver/clock"
	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/grammar"
	"rlserver/resp/command"
	"rlserver/resp/commands/clustering"
	"rlserver/resp/forward"
	"rlserver/resp/waitqueue"
)

// A call runs on the partition of its keys' slot: an engine, its journal and its clock. A server
// alone has one partition for all slots. In a cluster a node has one for each group of slots that
// it leads, and one without keys for the calls that have none.

// Partition is what calls on the keys of a group of slots run on, as long as this node leads it.
type Partition struct {
	Engine *engine.Engine
	Clock  *clock.Clock
	// Ask begins to wait until what calls have done and seen is agreed on.
	Ask   func() Outcome
	Ended <-chan struct{} // closed when the node no longer leads

	once sync.Once
	of   *partition
}

// Outcome is what replies of a partition wait for.
type Outcome interface {
	// Wait returns nil if the replies may be sent. Otherwise it is unknown whether what the calls
	// have done is lost.
	Wait() error
}

// Cluster is the cluster that this server is a node of.
type Cluster interface {
	command.Cluster
	// Groups returns how many groups share the slots; 0: the cluster is not made yet.
	Groups() int
	// Lead returns the partition of a group if this node leads it. Otherwise the error is a
	// *MovedError or ErrNoLeader.
	Lead(group int) (*Partition, error)
	// Await is Lead, but waits for a leader as long as calls are held, or until the context ends.
	Await(ctx context.Context, group int) (*Partition, error)
	// ChangeUsers makes a change of the users, which Server.ApplyUsers understands, on all nodes,
	// and returns how many were deleted. An error is a reply.
	ChangeUsers(change []byte) (deleted int, err error)
	forward.Nodes
}

// MovedError reports which node leads a group, and its host:port for clients.
type MovedError struct {
	Node       string // its name
	Address    string // for clients without TLS
	TLSAddress string // for clients with TLS
}

func (e *MovedError) addressFor(tls bool) string {
	if tls {
		return e.TLSAddress
	}
	return e.Address
}

func (e *MovedError) Error() string { return "moved to " + e.Address }

// ErrNoLeader reports that no node leads a group now.
var ErrNoLeader = errors.New("no node leads the group")

// partition is a Partition with what the server adds to it.
type partition struct {
	env    *command.Env
	queues *waitqueue.Queues
	group  int        // number of the group; -1: calls without keys
	shared *Partition // nil for the partition of a server alone, and for that without keys
}

// partitionOf returns the server's part of a partition.
func (s *Server) partitionOf(group int, shared *Partition) *partition {
	shared.once.Do(func() {
		env := s.Env
		p := &partition{env: &env, queues: new(waitqueue.Queues), group: group, shared: shared}
		env.Engine, env.Time, env.Waiting = shared.Engine, shared.Clock, p.queues
		env.RetryWaiting = p.queues.RetryAll
		p.queues.Init(shared.Engine, shared.Clock, s.unavailable, s.changesPaused)
		shared.of = p
		go func() {
			<-shared.Ended
			p.queues.Fail()
		}()
	})
	return shared.of
}

const (
	errCrossSlot = engine.Error("CROSSSLOT Keys in request don't hash to the same slot")
	errClusterNo = engine.Error("CLUSTERDOWN The cluster is down")
	// errUnbound is Redis' for a slot that no node serves.
	errUnbound       = engine.Error("CLUSTERDOWN Hash slot not served")
	errLeaderChanged = engine.Error(
		"TRYAGAIN another node begins to lead this slot, and the call has changed nothing: send it again")
	errOutcomeWithID = engine.Error(
		"TRYAGAIN another node begins to lead this slot: send the call again, its ID counts once")
	errUncertain = engine.Error(
		"UNCERTAIN another node begins to lead this slot: the call may have been carried out or not. A permit may " +
			"be spent that was not granted. Calls with an ID can be sent again safely")
	errOtherSlots = engine.Error(
		"CROSSSLOT the keys of one call have to be in one slot of the cluster: keys with the same {tag} are, such as " +
			"{user1}:minute and {user1}:day")
)

// seat is a session's Tx on a partition.
type seat struct {
	partition *partition
	tx        *engine.Tx
}

// clustered is what a session keeps in a cluster.
type clustered struct {
	at    seat         // where the call runs
	seats map[int]seat // by group
	owed  []owed       // partitions that replies of the batch wait for
	marks []mark
	watch *partition // of the watched keys
	slot  int        // of the keys of the transaction; -1: none yet

	// of EXEC, see enterTransaction
	aborted bool
	refusal error

	role   role
	calls  forward.Client // calls that other nodes run, see passing.go
	as     forward.Caller // of the batch of these
	target forward.Call   // where a call goes for which enter has returned errElsewhere
	node   forNode        // of a session for another node, see node_session.go
}

type owed struct {
	partition *partition
	outcome   Outcome
	err       error
}

// mark is where the reply of a call is, and what it depends on.
type mark struct {
	start, end int
	partition  *partition
	all        bool // it depends on all partitions of the batch
	write, id  bool
	group      int // of a call that other nodes run
	passed     int // number of the call among those that other nodes run, plus 1; 0: it runs here
}

// use makes the calls that follow run on a partition.
func (s *session) use(p *partition) {
	c := s.clustered
	if c.at.partition == p {
		return
	}
	found := c.seats[p.group]
	if found.partition != p {
		found = seat{p, p.env.Engine.NewTx()}
		c.seats[p.group] = found
	}
	c.at = found
	s.Tx, s.Env = found.tx, p.env
}

// enter makes a call run on the partition of its keys, in a cluster. It may wait for an election;
// no lock is held.
func (s *session) enter(p *command.Prepared, keys []engine.Key) error {
	if err := clustering.Refused(p); err != nil {
		return err
	}
	if len(keys) == 0 {
		if strings.HasPrefix(p.Command.FullName(), "rl.policy|") {
			// its group has the policies, and the others copy them from there
			return s.enterSlot(0, s.clustered.role != forOtherNode)
		}
		s.use(s.server.lobby)
		if p.Command.Name == "exec" && s.transaction.open && !s.transaction.broken {
			return s.enterTransaction()
		}
		if p.WantsAll() ||
			p.Command.Flags&(command.Write|command.Readonly) != 0 && p.Command.Flags&command.OwnLocks == 0 {
			return clustering.ErrWholeKeyspace
		}
		return nil
	}
	at, ok := slotOf(keys)
	if !ok {
		return crossSlot(p.Command)
	}
	return s.enterSlot(at, s.clustered.role == proxied)
}

// slotOf returns the slot of keys. ok is false if they are in several.
func slotOf(keys []engine.Key) (at int, ok bool) {
	at = slot.Of(keys[0].Name)
	for i := range keys[1:] {
		if slot.Of(keys[1+i].Name) != at {
			return at, false
		}
	}
	return at, true
}

// crossSlot returns Redis' words to commands that Redis has, and teaches with others.
func crossSlot(c *command.Command) error {
	if len(c.Name) > 3 && c.Name[:3] == "rl." {
		return errOtherSlots
	}
	return errCrossSlot
}

// enterSlot makes a call run on the partition of a slot. If pass is set, the call may run on
// another node: then the error is errElsewhere.
func (s *session) enterSlot(at int, pass bool) error {
	c, cluster := s.clustered, s.server.cluster
	groups := cluster.Groups()
	if groups == 0 {
		return errClusterNo
	}
	group := slot.Group(at, groups)
	if c.role == forOtherNode {
		return s.enterForNode(group)
	}
	if node := c.calls.Node(group); node != "" {
		c.target = forward.Call{Node: node, Group: group}
		return errElsewhere
	}
	shared, err := cluster.Lead(group)
	if err == ErrNoLeader {
		s.flush() // what came before need not wait
		s.replyStart, s.group = 0, s.group[:0]
		s.hasher.Reset()
		release := s.server.Stats.Group(group).Hold()
		ctx, cancel := context.WithDeadline(context.Background(), c.calls.HeldUntil())
		shared, err = cluster.Await(ctx, group)
		cancel()
		release()
	}
	if moved := (*MovedError)(nil); errors.As(err, &moved) {
		if pass {
			c.target = forward.Call{Node: moved.Node, Group: group}
			return errElsewhere
		}
		return engine.Error("MOVED " + strconv.Itoa(at) + " " + moved.addressFor(s.TLS()))
	}
	if err != nil {
		return errUnbound
	}
	s.use(s.server.partitionOf(group, shared))
	return nil
}

// sameGroup reports whether a further call can run under the same hold as those before it.
func (s *session) sameGroup(keys []engine.Key) bool {
	at, ok := slotOf(keys)
	return ok && slot.Group(at, s.server.cluster.Groups()) == s.clustered.at.partition.group
}

// markReply notes where the reply of a call is.
func (s *session) markReply(p *command.Prepared, start int) {
	c := s.clustered
	write := p.Command.Flags&command.Write != 0 || p.Command.Name == "exec"
	c.marks = append(c.marks, mark{
		start: start, end: len(s.Reply.B), partition: c.at.partition, write: write, id: write && countsOnce(p),
	})
}

// countsOnce reports whether a call of a limiter that is sent again has no further effect: the same
// lease, or an id in a log of hits. RL.REFUND with an id would give back more hits of that id.
func countsOnce(p *command.Prepared) bool {
	switch p.Command.Name {
	case "rl.lease", "rl.release":
		return true
	case "rl.slide", "rl.multi", "rl.all", "rl.check":
		return slices.ContainsFunc(p.Words[2:], func(w []byte) bool { return grammar.EqualFold(w, "ID") })
	}
	return false
}

// owe notes that the replies of the batch wait for the present partition.
func (s *session) owe() {
	c := s.clustered
	if c.at.partition.shared == nil {
		return
	}
	for i := range c.owed {
		if c.owed[i].partition == c.at.partition {
			return
		}
	}
	c.owed = append(c.owed, owed{partition: c.at.partition})
}

// settle waits until the replies of the batch may be sent, and for those of other nodes. Those
// whose outcome is unknown are replaced by errors.
func (s *session) settle() {
	c := s.clustered
	passed := c.calls.Pending() > 0
	for i := range c.owed {
		c.owed[i].outcome = c.owed[i].partition.shared.Ask()
	}
	if passed {
		c.calls.Send(c.as)
	}
	failed := false
	for i := range c.owed {
		c.owed[i].err = c.owed[i].outcome.Wait()
		failed = failed || c.owed[i].err != nil
	}
	if failed || passed {
		s.replaceReplies(failed)
	}
	if passed {
		c.calls.Done()
	}
	clear(c.owed)
	clear(c.marks)
	c.owed, c.marks = c.owed[:0], c.marks[:0]
}

// replaceReplies inserts the replies of other nodes, and replaces those whose outcome is unknown.
func (s *session) replaceReplies(failed bool) {
	c, from := s.clustered, s.Reply.B
	s.Reply.B, s.Reply.Truncated, s.Reply.NextCheck = make([]byte, 0, len(from)), false, 0
	done := 0
	for _, m := range c.marks {
		if m.end > len(from) || m.passed == 0 && !(m.all && failed) && !c.failed(m.partition) {
			continue // CLIENT REPLY has dropped it, or it stands
		}
		s.Reply.B = append(s.Reply.B, from[done:m.start]...)
		done = m.end
		switch {
		case m.passed > 0:
			s.collect(m)
		case m.start != m.end:
			s.ReplyError(string(s.outcomeOf(m)))
		}
		if s.closing || s.Reply.Truncated {
			return
		}
	}
	s.Reply.B = append(s.Reply.B, from[done:]...)
}

// outcomeOf returns the error that replaces a reply, and counts it.
func (s *session) outcomeOf(m mark) engine.Error {
	group := m.group
	if at := m.partition; at != nil && at.shared != nil {
		group = at.group
	} else if owed := s.clustered.owed; m.all && len(owed) > 0 {
		group = owed[0].partition.group
	}
	counts := s.server.Stats.Group(group)
	switch {
	case !m.write:
		counts.Repeat()
		return errLeaderChanged
	case m.id:
		counts.Repeat()
		return errOutcomeWithID
	}
	counts.Uncertain()
	return errUncertain
}

func (c *clustered) failed(p *partition) bool {
	for i := range c.owed {
		if c.owed[i].partition == p {
			return c.owed[i].err != nil
		}
	}
	return false
}

// sameSlot checks a command that is queued in a transaction: its keys have to be in the slot of
// those before, and that has to be led by this node.
func (s *session) sameSlot(p *command.Prepared) error {
	s.hasher.Reset()
	s.hasher.Add(p)
	if err := clustering.Refused(p); err != nil {
		return err
	}
	if len(s.hasher.Keys) == 0 {
		if err := clustering.RefusedInMulti(p); err != nil {
			return err
		}
		if p.WantsAll() || p.Command.Flags&(command.Write|command.Readonly) != 0 {
			return clustering.ErrWholeKeyspace
		}
		return nil
	}
	at, ok := slotOf(s.hasher.Keys)
	c := s.clustered
	if !ok || c.slot >= 0 && c.slot != at {
		return crossSlot(p.Command)
	}
	c.slot = at
	if err := s.enterSlot(at, c.role == proxied); err != errElsewhere {
		return err
	}
	return nil // EXEC passes on the transaction
}

// enterTransaction makes EXEC run on the partition of its keys. It notes whether the watched keys
// are no longer here, and why the transaction cannot run. The error is errElsewhere if another node
// is to run it.
func (s *session) enterTransaction() (err error) {
	c := s.clustered
	c.aborted, c.refusal = false, nil
	group, elsewhere := c.calls.Watches()
	here := len(s.watching.Keys(nil)) > 0
	if here {
		group = c.watch.group
	}
	switch {
	case c.slot >= 0 && (here || elsewhere) && slot.Group(c.slot, s.server.cluster.Groups()) != group:
		err = errCrossSlot
	case c.slot >= 0:
		err = s.enterSlot(c.slot, c.role == proxied)
		c.aborted = here && c.watch != c.at.partition || elsewhere && err == nil
	case elsewhere:
		c.target = forward.Call{Group: group}
		err = errElsewhere
	case here:
		s.use(c.watch)
	}
	if err == errElsewhere && !here {
		return err
	}
	if c.aborted = c.aborted || err == errElsewhere; !c.aborted {
		c.refusal = err
	}
	return nil
}

// watchesHere notes where keys are watched: all of them have to be in one partition.
func (s *session) watchesHere() error {
	c := s.clustered
	if group, elsewhere := c.calls.Watches(); elsewhere {
		if group != c.at.partition.group {
			return errCrossSlot
		}
		return errLeaderChanged
	}
	if len(s.watching.Keys(nil)) > 0 && c.watch != c.at.partition {
		if c.watch.group != c.at.partition.group {
			return errCrossSlot
		}
		return errLeaderChanged
	}
	c.watch = c.at.partition
	return nil
}

// failIfEnded ends the waiting of a call that was added to its queues after the leadership ended.
func (s *session) failIfEnded() {
	if s.clustered == nil {
		return
	}
	select {
	case <-s.clustered.at.partition.shared.Ended:
		s.clustered.at.partition.queues.Fail()
	default:
	}
}
