package cluster

import (
	"context"
	"time"
)

// The nodes that the map names first should lead, so that the work is spread. A leader hands a
// group over to that node when it has been there for a while.

const (
	// defaultBalanceInterval is between two groups that are handed over.
	defaultBalanceInterval = time.Second
	// balanceAfter is since the node that should lead was first heard, in intervals.
	balanceAfter = 5
)

// balance hands groups over until the context ends.
func (n *Node) balance(ctx context.Context) {
	ticker := time.NewTicker(n.options.balanceInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if number, to := n.misplaced(); to != "" {
			within, cancel := context.WithTimeout(ctx, n.options.Timeout)
			if err := n.Group(number).HandOver(within, to, "it should lead the group"); err != nil {
				n.log.Debug("a group was not handed over", "group", number, "to", to, "error", err)
			} else {
				n.log.Info("handed a group over to the node that should lead it", "group", number, "to", to)
			}
			cancel()
		}
	}
}

// misplaced returns a group that this node leads and another one should, "" if there is none.
func (n *Node) misplaced() (number int, to string) {
	for number, names := range n.Map().Replicas {
		g := n.Group(number)
		if g == nil || names[0] == n.self.Name || !g.Status().Leads {
			continue
		}
		n.mu.Lock()
		since, at := n.heardSince[names[0]], n.heardAt[names[0]]
		n.mu.Unlock()
		if !since.IsZero() && time.Since(since) > balanceAfter*n.options.balanceInterval &&
			time.Since(at) < n.options.Timeout {
			return number, names[0]
		}
	}
	return 0, ""
}
