package group

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// Leadership is given only to a replica that has stored an entry since it was asked: one whose disk
// hangs answers, and would serve nobody. Calls are served while it is asked.

// HandOver makes another node lead, if this one does: it waits until nothing is on its way, so that
// nothing has to be rebuilt. why is for the log, to has the names of the nodes that may lead; none:
// any. If leadership is being handed over already, it waits for the end of that: a node that stops
// must not close raft before. It returns ErrNoHeir if none of the nodes has a replica that votes,
// and a *NotStoredError if no replica that may take over can store anything.
func (g *Group) HandOver(ctx context.Context, why string, to ...string) error {
	g.handing.Lock()
	defer g.handing.Unlock()
	run := g.running.Load()
	r := run.fsm.replica.Load()
	if !r.Leads() {
		return nil
	}
	heirs := g.heirs(run, to)
	if len(heirs) == 0 {
		return ErrNoHeir
	}
	heir, err := g.ask(ctx, run, r, heirs)
	if err != nil {
		return err
	}
	for !r.endQuietly() {
		if r.why() != nil || !r.Leads() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("what is on its way is not committed: %w", ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
	return g.transfer(run, r, heir, why)
}

// ErrNoHeir reports that no other replica that votes may take over.
var ErrNoHeir = errors.New("no other replica that votes may take over")

// heirs returns the voters that may take over: those on some nodes, or on all others if none is
// named.
func (g *Group) heirs(run *running, nodes []string) (list []ReplicaID) {
	for _, s := range serversOf(run) {
		if s.Voter && s.ID != g.ID() && (len(nodes) == 0 || slices.Contains(nodes, s.ID.Node)) {
			list = append(list, s.ID)
		}
	}
	return list
}

// NotStoredError reports that replicas have stored no entry since they were asked to.
type NotStoredError struct{ Nodes []string }

func (e *NotStoredError) Error() string {
	return fmt.Sprintf("no entry was stored by %s in time: such a node is down or cut off, its disk hangs, or that of "+
		"this node does", strings.Join(e.Nodes, ", "))
}

// ask returns the first replica that has stored an entry that is later than the call.
func (g *Group) ask(ctx context.Context, run *running, r *Replica, heirs []ReplicaID) (ReplicaID, error) {
	term, last := run.raft.CurrentTerm(), run.raft.LastIndex()
	r.beat()
	late := time.After(g.options.Timeout)
	for {
		has := func(id ReplicaID) bool { return run.peers.has(raft.ServerID(id.String()), term, last+1) }
		if i := slices.IndexFunc(heirs, has); i >= 0 {
			return heirs[i], nil
		}
		select {
		case <-time.After(time.Millisecond):
			continue
		case <-late:
		case <-ctx.Done():
		}
		var e NotStoredError
		for _, id := range heirs {
			e.Nodes = append(e.Nodes, id.Node)
		}
		return ReplicaID{}, &e
	}
}

// transfer makes another replica lead. This one serves no calls. If it does not serve again, and
// raft still takes it for the leader after Options.Patience, raft ends: then the others elect one.
func (g *Group) transfer(run *running, r *Replica, heir ReplicaID, why string) error {
	g.noteChange()
	g.leadership.setHanded("handed over to " + heir.Node + ": " + why)
	run.transfers.Store(true)
	if within := g.options.Patience; within > 0 {
		run.endUnlessServing(r, run.raft.CurrentTerm(), heir.Node, within)
	}
	id := heir.String()
	err := run.await(run.raft.LeadershipTransferToServer(raft.ServerID(id), raft.ServerAddress(id)))
	if err != nil {
		g.leadership.setHanded("")
		run.goOn()
		return err
	}
	run.transfers.Store(false)
	g.counters.handOvers.Add(1)
	return nil
}

// endUnlessServing ends raft if it still leads in a term after a time, and serves no calls.
func (run *running) endUnlessServing(r *Replica, term uint64, heir string, within time.Duration) {
	time.AfterFunc(within, func() {
		if run.raft.State() == raft.Leader && run.raft.CurrentTerm() == term && !r.Leads() {
			run.giveUp(fmt.Sprintf("it was not handed over to %s within %v", heir, within))
		}
	})
}

// regainInterval is the time between attempts to go on after leadership could not be handed over.
const regainInterval = 10 * time.Millisecond

// goOn has a leader that could not hand over serve again: nobody else can.
func (run *running) goOn() { signal(run.regain) }

// gaveUpError is why a leader has ended its raft.
type gaveUpError struct{ why string }

func (e *gaveUpError) Error() string { return e.why }

// giveUp ends raft on a leader that serves nobody: the others hear it, and would wait for it.
func (run *running) giveUp(why string) {
	run.fsm.replica.Load().discard(&gaveUpError{why})
	run.shutdown()
}
