package cluster

import (
	"slices"
	"time"

	"rlserver/cluster/overview"
	"rlserver/cluster/slot"
)

// View returns the nodes and groups of the cluster as clients know them; none until it is made.
// Nodes count as up that were heard within a duration.
func (n *Node) View(within time.Duration) *overview.Cluster {
	c := &overview.Cluster{Name: n.self.Name}
	m := n.Map()
	if m == nil {
		return c
	}
	c.MapVersion = m.Version
	c.Nodes, c.Groups = make([]overview.Node, len(m.Members)), make([]overview.Group, m.Groups())
	for i := range m.Members {
		node := m.Members[i].Overview()
		if node.Name == n.self.Name {
			node.Heard, node.Up = 0, true
		} else if ago, ok := n.LastReport(node.Name); ok {
			node.Heard, node.Up = ago, ago < within
		}
		c.Nodes[i] = node
	}
	for number, names := range m.Replicas {
		slots, o := slot.RangeOf(number, m.Groups()), &c.Groups[number]
		o.Number, o.First, o.Last, o.Replicas, o.Role = number, slots.First, slots.Last, names, overview.None
		if m := n.Leader(number); m != nil {
			o.Leader = m.Name
		}
		if g := n.Group(number); g != nil {
			s := g.Status()
			o.Term = s.Term
			for i := range s.Members {
				if s.Members[i].Voter {
					o.Voters++
				}
			}
		}
	}
	return c
}

// Overview returns View with all figures, except for the counts of calls.
func (n *Node) Overview(within time.Duration) *overview.Cluster {
	c, m := n.View(within), n.Map()
	if len(c.Nodes) == 0 {
		return c
	}
	c.Timeout, c.NeededTimeout = n.options.Timeout, n.NeededTimeout()
	c.Moves, c.Drained = n.Moves(), n.Drained()
	policies := m.policiesVersion()
	for number := range c.Groups {
		g := &c.Groups[number]
		n.addFigures(g, policies)
		g.AtRisk = n.atRisk(number, g.Replicas)
	}
	for i := range c.Nodes {
		node := &c.Nodes[i]
		node.ClockOff = n.ClockOff(node.Name)
		node.RoundTrip, node.SyncTime = n.roundTrip(node.Name), n.syncTime(node.Name)
		for j := range c.Groups {
			g := &c.Groups[j]
			if g.Leader == node.Name {
				node.Leads++
			}
			if slices.Contains(g.Replicas, node.Name) {
				node.Replicas++
			}
		}
	}
	return c
}

// Others returns the names of the other nodes that were heard within a duration.
func (n *Node) Others(within time.Duration) (names []string) {
	m := n.Map()
	if m == nil {
		return nil
	}
	for i := range m.Members {
		name := m.Members[i].Name
		if ago, ok := n.LastReport(name); ok && ago < within && name != n.self.Name {
			names = append(names, name)
		}
	}
	return names
}

func (n *Node) addFigures(o *overview.Group, policies string) {
	g := n.Group(o.Number)
	if g == nil {
		return
	}
	f := g.Figures()
	o.Role, o.Term, o.LogEnd, o.Committed, o.Applied = f.Role, f.Term, f.Last, f.Committed, f.Applied
	o.LagEntries, o.Lag, o.Disk, o.Policies = f.LagEntries, f.LagTime, f.Disk, policies
	if f.Fault != nil {
		o.Fault = f.Fault.Error()
	}
	o.ReplicaCounts = f.ReplicaCounts
}
