package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"rlserver/cluster/group"
	"rlserver/cluster/mux"
	"rlserver/cluster/wanted"
)

// gossip exchanges reports with all members, and does what follows from them, until the context
// ends.
func (n *Node) gossip(ctx context.Context) {
	type exchange struct {
		member Member
		end    context.CancelFunc
	}
	exchanges := make(map[string]exchange)
	n.work.Go(func() { n.balance(ctx) })
	n.work.Go(func() { n.keepSeen(ctx) })
	n.work.Go(func() { n.every(ctx, clockInterval, n.compareClocks) })
	n.work.Go(func() { n.rounds(ctx, n.options.roundInterval, n.reconcile) })
	last := time.Now()
	n.rounds(ctx, n.options.roundInterval, func() {
		n.await(time.Since(last))
		last = time.Now()
		n.readNote()
		n.elect()
		n.leadCluster()
		n.move(ctx)
		m := n.Map()
		for name, t := range exchanges {
			if now := m.Member(name); now == nil || now.Address != t.member.Address {
				t.end()
				delete(exchanges, name)
			}
		}
		for _, member := range m.Members {
			if _, ok := exchanges[member.Name]; !ok && member.Name != n.self.Name {
				within, end := context.WithCancel(ctx)
				exchanges[member.Name] = exchange{member, end}
				n.work.Go(func() { n.exchange(within, member.Name) })
			}
		}
	})
	for _, t := range exchanges {
		t.end()
	}
}

// every calls a function at intervals until the context ends.
func (n *Node) every(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			do()
		}
	}
}

// rounds calls a function now, at intervals, and when something has changed, until the context
// ends.
func (n *Node) rounds(ctx context.Context, interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		do()
		select {
		case <-ctx.Done():
		case <-ticker.C:
		case <-changed:
		}
	}
}

// wakeLocked begins the next rounds at once: something that they look at has changed. n.mu is held.
func (n *Node) wakeLocked() {
	close(n.changed)
	n.changed = make(chan struct{})
}

func (n *Node) wake() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.wakeLocked()
}

func (n *Node) exchange(ctx context.Context, name string) {
	p := &peer{n: n, dial: func() (net.Conn, error) {
		return n.port.Dial(name, mux.Control, n.exchangeTimeout(name))
	}}
	defer p.close()
	n.rounds(ctx, min(2*n.options.roundInterval, n.options.Wanted/4), func() {
		var theirs Report
		own, begun := n.report(name), time.Now()
		switch err := p.call("Exchange", own, &theirs, n.exchangeTimeout(name)); {
		case err == nil:
			n.timed(name, time.Since(begun))
			n.receive(theirs)
		case errors.Is(err, mux.ErrOtherVersion):
			n.warnOften("a node cannot take part: "+err.Error(), "name", name)
		}
	})
}

// Report is what nodes send to each other all the time.
type Report struct {
	Node       string
	Member     Member // what the node is now
	MapVersion uint64
	Map        *Map           // in answer to a node that has an older one
	Start      uint64         // identity of the node's start
	Starts     uint64         // how often it was started
	History    []uint64       // its latest starts, this one last
	Order      uint64         // of its reports since the start
	Leaving    bool           // the node is about to stop: it should not lead
	Declines   map[int]bool   // groups that it should not be handed
	Unserving  bool           // it declines all of them, as it does not know the users
	Clock      int64          // its system clock, Unix µs
	SyncTime   time.Duration  // that its disk takes to sync entries, 0 if that is not known
	Leads      map[int]uint64 // terms, by group
	Committed  map[int]uint64 // index of the last entry known to be committed, in these groups
	Members    map[int][]group.Server
	// the members that store what the leader proposes
	KeepUp   map[int][]group.ReplicaID
	Replicas map[int]Replica      // by group
	Digests  map[int]group.Digest // of the state of its replicas, by group

	Accepts map[string]uint64  // the starts of other nodes that it has noted, see seen.go
	Refuses map[string]Refusal // those that it refuses
	Trusts  []string           // nodes whose replicas its own ones speak with
	Wanted  wanted.Message     // for the node that gets the report
}

// mayLead reports whether the node may be handed a group.
func (r *Report) mayLead(number int) bool { return !r.Leaving && !r.Unserving && !r.Declines[number] }

// differs reports whether two reports of a node differ in what the members of groups depend on.
func (r *Report) differs(other *Report) bool {
	same := func(a, b Replica) bool { return a.Instance == b.Instance }
	return r.MapVersion != other.MapVersion || r.Leaving != other.Leaving || !maps.Equal(r.Leads, other.Leads) ||
		!slices.Equal(r.Trusts, other.Trusts) ||
		!maps.EqualFunc(r.Members, other.Members, slices.Equal) || !maps.EqualFunc(r.Replicas, other.Replicas, same)
}

// Replica is the state of a replica on a node.
type Replica struct {
	Instance uint64
	Applied  uint64 // index of the last entry that is applied
	Last     uint64 // index of the last entry of its log
}

// report returns what this node reports to another.
func (n *Node) report(to string) Report {
	r := Report{
		Node: n.self.Name, Member: n.itself(), Leaving: n.leaving.Load(), Unserving: !n.serves(),
		Leads: make(map[int]uint64), Committed: make(map[int]uint64),
		Members: make(map[int][]group.Server), Replicas: make(map[int]Replica),
		Digests: make(map[int]group.Digest), KeepUp: make(map[int][]group.ReplicaID),
		Wanted: n.wanted.Send(to, time.Now()),
	}
	r.SyncTime = n.syncTimes.median()
	// or a report with a higher number could have been read before, and say that logs are shorter
	n.reporting.Lock()
	defer n.reporting.Unlock()
	n.mu.Lock()
	n.orders++
	r.Order, r.Start, r.Starts, r.History = n.orders, n.nonce, n.saved.Starts, n.saved.History
	r.Accepts, r.Refuses = n.verdicts()
	if trusted := n.trusted.Load(); trusted != nil {
		r.Trusts = *trusted
	}
	r.Declines = maps.Clone(n.declined)
	n.mu.Unlock()
	r.Clock, _ = n.options.Clock.Read()
	if m := n.Map(); m != nil {
		r.MapVersion = m.Version
	}
	for i, g := range n.groups() {
		if g == nil {
			continue
		}
		if d := g.Digest(); d.Index != 0 {
			r.Digests[i] = d
		}
		st := g.Status()
		r.Replicas[i] = Replica{g.ID().Instance, st.Applied, st.Last}
		if p, err := g.Leading(); err == nil {
			r.Leads[i], r.Committed[i], r.Members[i], r.KeepUp[i] = p.Term(), st.Committed, st.Members, g.KeepUp()
		}
	}
	return r
}

// receive notes another node's report.
func (n *Node) receive(r Report) {
	m := n.Map()
	if m == nil {
		return // the other one has begun already
	}
	if r.Map != nil {
		n.follow(r.Map)
		m = n.Map()
	}
	if known := m.Member(r.Node); known == nil || known.Instance != r.Member.Instance {
		return // it does not know yet that it is no member, or this node not that it is one
	}
	n.mu.Lock()
	n.receiveVerdict(&r)
	admitted := n.judge(&r, m.ID)
	refusal := ""
	if of := n.seen.Nodes[r.Node]; !admitted {
		refusal = of.why
	}
	n.mu.Unlock()
	if refusal != "" {
		n.warnOften(fmt.Sprintf("node %s is refused: %s. Its directory is older than what it has acknowledged: remove "+
			"it, and the node joins as a new one", r.Node, refusal))
	}
	if !admitted {
		return
	}
	n.wanted.Receive(r.Node, r.Wanted, time.Now())
	if _, leads := r.Leads[0]; leads && r.MapVersion <= m.Version {
		n.confirmUsers()
	}
	for i, index := range r.Committed {
		if g := n.Group(i); g != nil {
			g.NoteCommitted(index)
		}
	}
	for i, d := range r.Digests {
		if g := n.Group(i); g != nil {
			g.NoteDigest(r.Node, d)
		}
	}
	n.noteReport(r)
}

// noteReport makes a report the last one of its node. A later one may have been noted since this
// one was judged: then it changes nothing.
func (n *Node) noteReport(r Report) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if of := n.seen.Nodes[r.Node]; of == nil || of.Start != r.Start || of.order != r.Order {
		return
	}
	o := n.others[r.Node]
	if o.at.IsZero() || o.report.differs(&r) {
		n.wakeLocked()
	}
	o.report, o.at, o.offset = r, time.Now(), r.Clock-n.options.Clock.Elapsed().Microseconds()
	n.others[r.Node] = o
	for i := range n.leaders {
		term, leads := r.Leads[i]
		switch l := &n.leaders[i]; {
		case leads && term >= l.term:
			*l = leader{r.Node, term, r.Members[i], r.KeepUp[i], r.MapVersion}
		case !leads && l.name == r.Node:
			l.name = ""
		}
	}
}

// upLocked reports whether a node has reported a short time ago. n.mu is held.
func (n *Node) upLocked(name string) bool {
	return time.Since(n.others[name].at) < n.options.Timeout
}

// up is upLocked, for this node as well.
func (n *Node) up(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return name == n.self.Name || n.upLocked(name)
}
