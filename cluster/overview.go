package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rlserver/cluster/group"
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

// The cluster is ready for the loss of any one node, as at an upgrade, if each group keeps a
// majority then. What counts is what the leader of a group says about its members: who votes, and
// who stores what it proposes. The node that is asked needs its own replicas as well.

// leaderOf returns what the leader of a group says; false if none has reported a short time ago.
func (n *Node) leaderOf(number int) (by leader, ok bool) {
	if g := n.Group(number); g != nil {
		if st := g.Status(); st.Leads {
			return leader{n.self.Name, st.Term, st.Members, g.KeepUp(), n.Map().Version}, true
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.leaders[number]
	return l, l.name != "" && n.upLocked(l.name)
}

// atRisk returns why a group, of which some nodes should have a replica, might not survive the loss
// of any one node, or the replica that this node should have is not in order; "": neither.
func (n *Node) atRisk(number int, want []string) string {
	by, known := n.leaderOf(number)
	if !known {
		return "no leader that this node hears says who its members are"
	}
	var voters, stay []group.ReplicaID
	var missing []string
	for _, s := range by.members {
		switch {
		case !s.Voter:
			continue
		case n.stays(number, s.ID, by):
			stay = append(stay, s.ID)
		default:
			missing = append(missing, s.ID.Node)
		}
		voters = append(voters, s.ID)
	}
	if slices.Contains(want, n.self.Name) {
		switch g := n.Group(number); {
		case g == nil:
			return "the replica that this node should have is not made yet"
		case !slices.Contains(voters, g.ID()):
			return "the replica of this node does not vote yet"
		case !slices.Contains(stay, g.ID()) || !g.Level():
			return "the replica of this node has not caught up yet"
		}
	}
	nodes := len(n.Map().staying())
	switch least := len(voters)/2 + 1; {
	case len(voters) < min(replication, nodes):
		return fmt.Sprintf("it has %d replicas that vote, and should have %d", len(voters), min(replication, nodes))
	case nodes >= replication && len(stay)-1 < least, nodes < replication && len(missing) > 0:
		return "one more loss would stop it, as replicas are down, lag or leave: " + strings.Join(missing, ", ")
	}
	return ""
}

// stays reports whether a replica of a group is there, stores what its leader proposes and is not
// about to stop.
func (n *Node) stays(number int, id group.ReplicaID, by leader) bool {
	if !slices.Contains(by.keepUp, id) {
		return false
	}
	if id.Node == n.self.Name {
		return true
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	r := n.others[id.Node].report // after a restart without its data it has another replica
	return n.upLocked(id.Node) && !r.Leaving && r.Replicas[number].Instance == id.Instance
}
