package group

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"rlserver/engine"
	"rlserver/engine/effect"
	"rlserver/persistence"
)

// All replicas of a group must have the same state at the same entry of the log. The leader
// proposes an entry for that each minute, if anything has changed. A follower that applies it
// computes the digest of its state; the leader computes that of the moment at which it has queued
// the entry, after all that it had decided until then. Keys that have expired at the entry's time
// do not count: a leader deletes them when it likes. The nodes report digests to each other.
//
// The digest is computed from a snapshot, in steps with rests, while calls go on. That takes a
// fifth of one processor for about three seconds per million keys, and memory for the values that
// change meanwhile, once each. If a snapshot is being written or is begun, there is no digest.

// Digest is the hash of a replica's state at an entry. The zero value is none.
type Digest struct {
	Index uint64 // of the entry
	Sum   [2]uint64
}

// digesting is what a replica has of the digest that is being computed.
type digesting struct {
	mu     sync.Mutex
	paused int              // snapshots that are being written
	own    *engine.Snapshot // the leader's state at the entry that it has queued; nil: none
	stop   chan struct{}    // closed to end the latest work; nil: there was none, or it is stopped
	ended  chan struct{}    // closed when that has ended
}

// pause ends the work, as an engine has one snapshot at a time.
func (d *digesting) pause() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused++
	d.dropLocked()
	if d.stop != nil {
		close(d.stop)
		<-d.ended
		d.stop = nil
	}
}

func (d *digesting) resume() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused--
}

// busyLocked reports whether the engine has a snapshot already.
func (d *digesting) busyLocked() bool {
	return d.paused > 0 || d.own != nil || d.stop != nil && !isClosed(d.ended)
}

// drop ends what take has begun.
func (d *digesting) drop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dropLocked()
}

func (d *digesting) dropLocked() {
	if d.own != nil {
		d.own.Close()
		d.own = nil
	}
}

// take begins a snapshot of the leader's state, and has cut queue the entry at that moment. at is
// the entry's time, Unix ms.
func (d *digesting) take(e *engine.Engine, at int64, cut func() bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busyLocked() {
		return
	}
	queued := false
	// without waiting: leadership would not be followed meanwhile
	d.own = e.TrySnapshot(at, func() { queued = cut() })
	if !queued {
		d.dropLocked()
	}
}

// begin computes the digest of the state, or of what take has kept if the entry is this replica's
// own, and calls done with it. It returns at once.
func (d *digesting) begin(r *Replica, at int64, own bool, done func(sum [2]uint64)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.own
	switch {
	case own && s == nil:
		return // dropped for a snapshot
	case own:
		d.own = nil
	case d.busyLocked():
		return
	default:
		s = r.Engine.SnapshotAt(at, func() {})
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	d.stop, d.ended = stop, ended
	go func() {
		defer close(ended)
		defer s.Close()
		if sum, ok := sumOf(s, stop); ok {
			done(sum)
		}
	}()
}

// sumOf computes the digest of a snapshot. ok is false if it was stopped, or keys were evicted
// before their turn.
func sumOf(s *engine.Snapshot, stop <-chan struct{}) (sum [2]uint64, ok bool) {
	var d effect.Sum
	start := time.Now()
	for s.Step(func(effects []effect.Effect) {
		for i := range effects {
			d.Add(&effects[i])
		}
	}) {
		rest := persistence.RestAfter(time.Since(start))
		if rest == 0 {
			continue
		}
		select {
		case <-stop:
			return d.Sum, false
		case <-time.After(rest):
		}
		start = time.Now()
	}
	return d.Sum, !s.Omitted()
}

// mark queues the entry at which digests are computed, after all that was appended. It is called
// under all locks of the engine. at is the entry's time, Unix ms.
func (r *Replica) mark(at int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil || r.leading.Load() == nil {
		return false
	}
	if !r.next.empty() || r.wanted {
		r.queue = append(r.queue, r.next)
		r.wanted = false
	}
	b := r.newBatch()
	b.kind, b.at = entryDigest, at
	r.queue = append(r.queue, b)
	r.next = r.newBatch()
	signal(r.work)
	return true
}

// digest applies an entry of the kind.
func (f *fsm) digest(l *raft.Log, h header, own bool) any {
	r := f.replica.Load()
	switch {
	case h.term != l.Term:
		if own {
			r.digest.drop()
		}
		return errFenced
	case h.proposer == f.skip && h.last < f.skipTo:
		return nil // the state is ahead of the entry
	}
	r.digest.begin(r, h.at, own, func(sum [2]uint64) { f.digested(Digest{l.Index, sum}) })
	return nil
}

// proposeDigest is called each second while r leads.
func (g *Group) proposeDigest(r *Replica) {
	c := &g.comparison
	c.mu.Lock()
	// it has just begun: its time is not yet surely after all that any replica has seen
	if c.replica != r {
		c.replica, c.proposed, c.number = r, time.Now(), 0
	}
	number := r.lastAppended()
	due := time.Since(c.proposed) >= g.options.digestEvery && c.number != number
	if due {
		c.proposed, c.number = time.Now(), number
	}
	c.mu.Unlock()
	if p := r.leading.Load(); due && p != nil {
		now := p.Clock.Now()
		r.digest.take(r.Engine, now, func() bool { return r.mark(now) })
	}
}

// comparison is what a group knows about the digests of its replicas.
type comparison struct {
	mu       sync.Mutex
	proposed time.Time // the last entry by this node
	replica  *Replica  // by which
	number   uint64    // of the last record then

	own     Digest
	others  map[string]Digest
	same    uint64 // the last entry at which most replicas had the state of this one
	suspect uint64 // the entry at which this replica differed from the leader's, with no majority
}

// Digest returns the digest that this replica has computed last.
func (g *Group) Digest() Digest {
	g.comparison.mu.Lock()
	defer g.comparison.mu.Unlock()
	return g.comparison.own
}

// NoteDigest notes the digest of the replica on another node.
func (g *Group) NoteDigest(node string, d Digest) {
	c := &g.comparison
	c.mu.Lock()
	if c.others == nil {
		c.others = make(map[string]Digest)
	}
	changed := d.Index != 0 && c.others[node] != d
	c.others[node] = d
	c.mu.Unlock()
	if changed {
		g.compare()
	}
}

func (g *Group) setDigest(run *running, d Digest) {
	if run != g.running.Load() || run.fault.Load() != nil {
		return
	}
	g.comparison.mu.Lock()
	g.comparison.own = d
	g.comparison.mu.Unlock()
	g.compare()
}

// compare compares the digests of the replicas. One that is alone with its state stops.
func (g *Group) compare() {
	st := g.Status()
	run := g.running.Load()
	c := &g.comparison
	c.mu.Lock()
	with, against := c.count()
	own, majority := c.own, len(st.Members)/2+1
	leaders := c.others[st.Leader]
	suspect := with < majority && !st.Leads && leaders.Index == own.Index && leaders.Sum != own.Sum
	again := suspect && c.suspect != 0 && c.suspect < own.Index
	switch {
	case suspect && c.suspect == 0:
		c.suspect = own.Index
	case with >= majority:
		if c.suspect = 0; c.same != own.Index {
			c.same = own.Index
			g.counters.digests.Add(1)
		}
	}
	c.mu.Unlock()
	switch {
	case own.Index == 0 || run.fault.Load() != nil:
	case against >= majority:
		g.broken(run, fmt.Errorf("its state at entry %d differs from that of the other replicas", own.Index))
	case again:
		g.broken(run, fmt.Errorf("its state at entry %d differs from that of the leader, node %s, as it did before",
			own.Index, st.Leader))
	case suspect:
		g.log.Error("the state of this replica differs from that of the leader: which one is wrong is not known "+
			"until a third replica reports its digest", "leader", st.Leader, "entry", own.Index)
	}
}

// count returns how many replicas have the state that this one has at the same entry, and how many
// have another one.
func (c *comparison) count() (with, against int) {
	votes := make(map[[2]uint64]int)
	for _, d := range c.others {
		if d.Index == c.own.Index {
			votes[d.Sum]++
		}
	}
	for sum, n := range votes {
		if sum != c.own.Sum {
			against = max(against, n)
		}
	}
	return votes[c.own.Sum] + 1, against
}
