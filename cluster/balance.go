package cluster

import (
	"context"
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
		reasons := n.handOver(within, "the node was elected again after an order", false)
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
