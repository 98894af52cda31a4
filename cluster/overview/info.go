package overview

import "fmt"

// WriteCluster writes the fields of INFO cluster: the nodes, and the sums over the groups.
func (c *Cluster) WriteCluster(write func(name string, value any)) {
	t := c.Totals()
	up, leaving, off := 0, 0, 0
	for i := range c.Nodes {
		n := &c.Nodes[i]
		up, leaving, off = up+digit(n.Up), leaving+digit(n.Leaving), off+digit(n.ClockOff)
	}
	write("cluster_node", c.Name)
	write("cluster_nodes", len(c.Nodes))
	write("cluster_nodes_up", up)
	write("cluster_nodes_leaving", leaving)
	write("cluster_nodes_clock_off", off)
	write("cluster_timeout_ms", c.Timeout.Milliseconds())
	write("cluster_timeout_needed_ms", c.NeededTimeout.Milliseconds())
	write("cluster_map_version", c.MapVersion)
	write("cluster_moves_in_progress", c.Moves)
	write("cluster_drained", digit(c.Drained))
	why := c.Ready()
	write("cluster_ready", digit(why == nil))
	if why != nil {
		write("cluster_not_ready_because", why)
	}
	write("cluster_groups", len(c.Groups))
	write("cluster_groups_replicated", t.Replicas)
	write("cluster_groups_led", t.Led)
	write("cluster_groups_without_leader", t.WithoutLeader)
	write("cluster_groups_broken", t.Broken)
	write("cluster_elections_called", t.ElectionsCalled)
	write("cluster_elections_won", t.ElectionsWon)
	write("cluster_leader_changes", t.LeaderChanges)
	write("cluster_handovers", t.HandOvers)
	write("cluster_rebuilds", t.Rebuilds)
	write("cluster_snapshots", t.Snapshots)
	write("cluster_failed_snapshots", t.FailedSnapshots)
	write("cluster_digests", t.Digests)
	write("cluster_holding_calls", t.Holding)
	write("cluster_held_calls", t.Held)
	write("cluster_refused_calls", t.Refused)
	write("cluster_uncertain_replies", t.Uncertain)
	write("cluster_tryagain_replies", t.Repeat)
	write("proxy_clients", c.Proxy.Clients)
	write("proxy_links_in", c.Proxy.LinksIn)
	write("proxy_links_out", c.Proxy.LinksOut)
	write("proxy_calls", c.Proxy.Calls)
	write("proxy_calls_again", c.Proxy.Again)
	write("proxy_calls_unknown", c.Proxy.Unknown)
	write("proxy_calls_failed", c.Proxy.Failed)
	write("proxy_link_waits", c.Proxy.LinkWaits)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		write(fmt.Sprint("node", i), fmt.Sprintf("name=%s,address=%s,up=%d,leaving=%d,heard_ms=%d,leads=%d,"+
			"replicas=%d,clock_off=%d,round_trip_us=%d,sync_us=%d,version=%s", n.Name, n.Address(false), digit(n.Up),
			digit(n.Leaving), n.HeardAgo(), n.Leads, n.Replicas, digit(n.ClockOff), n.RoundTrip.Microseconds(),
			n.SyncTime.Microseconds(), n.Version))
	}
}

// WriteReplication writes the fields of INFO replication about the groups.
func (c *Cluster) WriteReplication(write func(name string, value any)) {
	t := c.Totals()
	write("lag_entries", t.LagEntries)
	write("lag_ms", t.Lag.Milliseconds())
	for i := range c.Groups {
		g := &c.Groups[i]
		line := fmt.Sprintf("slots=%d-%d,role=%s,leader=%s", g.First, g.Last, g.Role, g.Leader)
		if g.Role != None {
			line += fmt.Sprintf(",term=%d,committed=%d,log_end=%d,applied=%d,lag_entries=%d,lag_ms=%d,replicas=%d,"+
				"elections_called=%d,elections_won=%d,leader_changes=%d,handovers=%d,rebuilds=%d,snapshots=%d,"+
				"failed_snapshots=%d,digests=%d,policies=%s",
				g.Term, g.Committed, g.LogEnd, g.Applied, g.LagEntries, g.Lag.Milliseconds(), len(g.Replicas),
				g.ElectionsCalled, g.ElectionsWon, g.LeaderChanges, g.HandOvers, g.Rebuilds, g.Snapshots,
				g.FailedSnapshots, g.Digests, g.Policies)
		}
		line += fmt.Sprintf(",holding_calls=%d,held_calls=%d,refused_calls=%d,uncertain_replies=%d,tryagain_replies=%d",
			g.Holding, g.Held, g.Refused, g.Uncertain, g.Repeat)
		write(fmt.Sprint("group", g.Number), line)
	}
}

func digit(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
