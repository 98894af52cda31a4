package group

import (
	"context"

	"github.com/hashicorp/raft"
)

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
