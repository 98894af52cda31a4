package cluster

import (
	"context"
	"slices"
	"sync"
	"time"
)

// The nodes that the map names first should lead, so that the work is spread. A leader hands a
// group over to that node when it has stored what the leader proposes for a while, unless its disk
// is much slower.

const (
	// defaultBalanceInterval is between two groups that are handed over.
	defaultBalanceInterval = time.Second
	// balanceAfter is for how long the node that should lead has stored what is proposed, in
	// intervals.
	balanceAfter = 5
)

// balance hands groups over until the context ends.
func (n *Node) balance(ctx context.Context) {
	n.every(ctx, n.options.balanceInterval, func() {
		n.checkTimeout()
		within, cancel := context.WithTimeout(ctx, 2*n.options.Timeout)
		defer cancel()
		reasons := n.handOver(within, "the node was elected again after an order, or does not know the users", false)
		if err := notHandedOver(reasons); err != nil {
			n.warnOften("this node leads groups that it was told to hand over", "because", err)
		}
		if number, to := n.yield(time.Now(), balanceAfter*n.options.balanceInterval); to != "" {
			n.give(within, number, to, "its disk is much faster")
		} else if number, to := n.misplaced(); to != "" {
			n.give(within, number, to, "it should lead the group")
		}
	})
}

// elect has each group that this node should lead elect it at once, the first time that a majority
// of its nodes is there. A cluster that starts need not wait for the groups' timeouts.
func (n *Node) elect() {
	for number, names := range n.Map().Replicas {
		g := n.Group(number)
		if g == nil || names[0] != n.self.Name || n.elected[number] {
			continue
		}
		there := 0
		for _, name := range names {
			if _, ok := n.replicaOn(number, name); ok && n.speakTogether(name) {
				there++
			}
		}
		if 2*there > len(names) {
			n.elected[number] = true
			g.CallElection()
		}
	}
}

// misplaced returns a group that this node leads and another one should, "" if there is none.
func (n *Node) misplaced() (number int, to string) {
	for number, names := range n.Map().Replicas {
		g := n.Group(number)
		if g == nil || names[0] == n.self.Name {
			continue
		}
		st := g.Status()
		if !st.Leads || !matches(names, st.Members) || n.lostOne(number, st.Members) {
			continue
		}
		slow := stays(n.syncTimes.median(), n.syncTime(names[0]))
		if !slow && n.mayLead(number, names[0], balanceAfter*n.options.balanceInterval) {
			return number, names[0]
		}
	}
	return 0, ""
}

// The nodes measure how long their disks take to sync entries, and messages to each other: which
// --cluster-timeout these need, and whether another replica of a group that a node leads has a much
// faster disk. All that is written waits for the disk of the leader.

// latestKept is how many durations are kept.
const latestKept = 16

// latest are the latest durations of something.
type latest struct {
	mu    sync.Mutex
	list  [latestKept]time.Duration
	count int // of all that were added
}

func (l *latest) add(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list[l.count%latestKept] = d
	l.count++
}

// longerThan returns the one that is longer than a number of others, 0 before there are enough.
func (l *latest) longerThan(others int) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count < latestKept {
		return 0
	}
	return slices.Sorted(slices.Values(l.list[:]))[others]
}

// median returns the middle one, 0 before there are enough.
func (l *latest) median() time.Duration { return l.longerThan(latestKept / 2) }

// least returns the shortest, 0 before there are enough: a machine that is busy adds to the others.
func (l *latest) least() time.Duration { return l.longerThan(0) }

// timed notes how long an exchange with a node took.
func (n *Node) timed(name string, took time.Duration) {
	n.mu.Lock()
	o := n.others[name]
	if o.trips == nil {
		o.trips = new(latest)
		n.others[name] = o
	}
	n.mu.Unlock()
	o.trips.add(took)
}

// roundTrip returns how long a message to a node and its answer take, 0 if that is not known.
func (n *Node) roundTrip(name string) time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	if trips := n.others[name].trips; trips != nil && n.upLocked(name) {
		return trips.least()
	}
	return 0
}

// observeSync notes how long entries took to be synced.
func (n *Node) observeSync(took time.Duration) {
	n.syncTimes.add(took)
	if n.options.ObserveSync != nil {
		n.options.ObserveSync(took)
	}
}

// syncTime returns how long a node's disk takes to sync entries, 0 if that is not known.
func (n *Node) syncTime(name string) time.Duration {
	if name == n.self.Name {
		return n.syncTimes.median()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.others[name].report.SyncTime
}

// neededTimeout returns the --cluster-timeout that a round trip and the disk need: a leader that
// begins makes its connections, which take four round trips, and is elected and heard with them.
// The answer to a message, with the sync of its entries, has a quarter of the timeout.
func neededTimeout(trip, sync time.Duration) time.Duration {
	const step = 100 * time.Millisecond // a round trip of 100 ms is measured as 101 ms
	if needed := 10*trip + 4*sync; needed > 0 {
		return max(step, needed.Round(step))
	}
	return 0
}

// NeededTimeout returns the Options.Timeout that the round trips to the others and the disk of this
// node need, as measured.
func (n *Node) NeededTimeout() time.Duration {
	trip := time.Duration(0)
	if m := n.Map(); m != nil {
		for i := range m.Members {
			trip = max(trip, n.roundTrip(m.Members[i].Name))
		}
	}
	return neededTimeout(trip, n.syncTimes.median())
}

// checkTimeout logs which --cluster-timeout is needed, whenever that changes by a quarter.
func (n *Node) checkTimeout() {
	needed := n.NeededTimeout()
	switch short := needed > n.options.Timeout; {
	case short && (needed > n.warnedOf*5/4 || needed < n.warnedOf*3/4):
		n.log.Warn("--cluster-timeout is too short for the round trips between the nodes and the disk of this one: "+
			"groups may have no leader for long", "needed", needed, "is", n.options.Timeout)
		n.warnedOf = needed
	case !short && n.warnedOf != 0 && needed < n.options.Timeout*3/4:
		n.log.Info("--cluster-timeout is long enough again", "needed", needed, "is", n.options.Timeout)
		n.warnedOf = 0
	}
}

// A group goes to a node whose disk is faster if its leader's was much slower for slowFor, in
// intervals of the balancer, and not again within yieldAgain.
const (
	slowFor    = 5
	slowTimes  = 4
	slowBy     = 20 * time.Millisecond
	yieldAgain = time.Minute
)

// slower reports whether a disk is much slower than another. Both are known.
func slower(sync, other time.Duration) bool {
	return sync > 0 && other > 0 && sync >= slowTimes*other && sync-other >= slowBy
}

// stays reports whether a group stays where it is, rather than go to another disk: that is slower
// by half of what has a group handed over, or more, so that it does not go to and fro.
func stays(own, other time.Duration) bool { return slower(2*other, own) }

// yield returns a group that this node leads and another replica would lead with a much faster
// disk, and where that is, "" if there is none. That one has kept up for a time. It is called at
// each interval of the balancer.
func (n *Node) yield(now time.Time, kept time.Duration) (number int, to string) {
	own := n.syncTimes.median()
	faster := func(name string) bool { return name != n.self.Name && slower(own, n.syncTime(name)) }
	if m := n.Map(); !slices.ContainsFunc(m.Members, func(m Member) bool { return faster(m.Name) }) {
		n.slow = 0
		return 0, ""
	}
	if n.slow++; n.slow < slowFor {
		return 0, ""
	}
	for number, names := range n.Map().Replicas {
		g := n.Group(number)
		if g == nil || now.Sub(n.yielded[number]) < yieldAgain {
			continue
		}
		if st := g.Status(); !st.Leads || !matches(names, st.Members) || n.lostOne(number, st.Members) {
			continue
		}
		for _, name := range names {
			if faster(name) && n.mayLead(number, name, kept) {
				n.yielded[number] = now
				return number, name
			}
		}
	}
	return 0, ""
}

// mayLead reports whether a group that this node leads may be handed to a node: it has kept up
// for a time, and does not decline.
func (n *Node) mayLead(number int, name string, kept time.Duration) bool {
	id, up := n.replicaOn(number, name)
	n.mu.Lock()
	should := n.others[name].report
	n.mu.Unlock()
	return up && should.mayLead(number) && n.Group(number).KeptUp(id) > kept
}

// give hands a group over to a node.
func (n *Node) give(ctx context.Context, number int, to, why string) {
	if err := n.Group(number).HandOver(ctx, why, to); err != nil {
		n.log.Debug("a group was not handed over", "group", number, "to", to, "error", err)
	} else {
		n.log.Info("handed a group over", "group", number, "to", to, "because", why)
	}
}
