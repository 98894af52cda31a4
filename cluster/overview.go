package cluster

import (
	"slices"
	"time"

	"rlserver/cluster/overview"
	"rlserver/cluster/slot"
)

// Overview returns what this node knows about its cluster. Nodes count as up that were heard within
// a duration. addressOf returns where clients reach a node. Counts of calls are not set.
func (n *Node) Overview(within time.Duration, addressOf func(*Member) string) *overview.Cluster {
	c := &overview.Cluster{Name: n.self.Name}
	m := n.Map()
	if m == nil {
		return c
	}
	c.Timeout, c.NeededTimeout = n.options.Timeout, n.NeededTimeout()
	c.MapVersion, c.Moves, c.Drained = m.Version, n.Moves(), n.Drained()
	policies := m.policiesVersion()
	for number, names := range m.Replicas {
		o := n.overviewOf(number, names, m.Groups(), policies)
		o.AtRisk = n.atRisk(number, names)
		c.Groups = append(c.Groups, o)
	}
	for i := range m.Members {
		member := &m.Members[i]
		node := overview.Node{
			Name: member.Name, ID: member.ID, Address: addressOf(member), Version: member.Version, Heard: -1,
			Leaving: member.Leaving, ClockOff: n.ClockOff(member.Name),
			RoundTrip: n.roundTrip(member.Name), SyncTime: n.syncTime(member.Name),
		}
		if member.Name == n.self.Name {
			node.Heard, node.Up = 0, true
		} else if ago, ok := n.LastReport(member.Name); ok {
			node.Heard, node.Up = ago, ago < within
		}
		for j := range c.Groups {
			g := &c.Groups[j]
			if g.Leader == member.Name {
				node.Leads++
			}
			if slices.Contains(g.Replicas, member.Name) {
				node.Replicas++
			}
		}
		c.Nodes = append(c.Nodes, node)
	}
	return c
}

func (n *Node) overviewOf(number int, names []string, groups int, policies string) overview.Group {
	slots := slot.RangeOf(number, groups)
	o := overview.Group{
		Number: number, First: slots.First, Last: slots.Last, Replicas: names, Role: overview.None,
	}
	if m := n.Leader(number); m != nil {
		o.Leader = m.Name
	}
	g := n.Group(number)
	if g == nil {
		return o
	}
	f := g.Figures()
	o.Role, o.Term, o.LogEnd, o.Committed, o.Applied = f.Role, f.Term, f.Last, f.Committed, f.Applied
	o.LagEntries, o.Lag, o.Disk, o.Policies = f.LagEntries, f.LagTime, f.Disk, policies
	if f.Fault != nil {
		o.Fault = f.Fault.Error()
	}
	o.ReplicaCounts = f.ReplicaCounts
	return o
}
