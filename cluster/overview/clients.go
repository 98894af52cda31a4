package overview

import (
	"net"
	"slices"
	"strconv"

	"rlserver/cluster/slot"
)

// PortFor returns the port for a client with or without TLS. If the node has only the other port,
// PortFor returns that one.
func (n *Node) PortFor(tls bool) int {
	if tls && n.TLSPort != 0 || n.Port == 0 {
		return n.TLSPort
	}
	return n.Port
}

// Address returns where a client with or without TLS reaches the node, host:port.
func (n *Node) Address(tls bool) string {
	return net.JoinHostPort(n.Host, strconv.Itoa(n.PortFor(tls)))
}

// Node returns the node of a name, or nil.
func (c *Cluster) Node(name string) *Node {
	return c.find(func(n *Node) bool { return n.Name == name })
}

// NodeByID returns the node of an id, or nil.
func (c *Cluster) NodeByID(id string) *Node { return c.find(func(n *Node) bool { return n.ID == id }) }

func (c *Cluster) find(is func(*Node) bool) *Node {
	for i := range c.Nodes {
		if is(&c.Nodes[i]) {
			return &c.Nodes[i]
		}
	}
	return nil
}

// Others returns how many other nodes are up.
func (c *Cluster) Others() (up int) {
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Up && n.Name != c.Name {
			up++
		}
	}
	return up
}

// Term returns the largest term of all groups.
func (c *Cluster) Term() (term uint64) {
	for i := range c.Groups {
		term = max(term, c.Groups[i].Term)
	}
	return term
}

// Shown returns the node of a group for clients: its leader. Without one it is this node if it is a
// replica, otherwise a replica that is up: calls wait there for the election. Clients do not expect
// slots without a node. The other replicas are not shown: clients take a node that is the replica
// of any slots for one that leads none.
func (c *Cluster) Shown(g *Group) *Node {
	leader := c.Node(g.Leader)
	switch {
	case leader != nil || len(g.Replicas) == 0:
		return leader
	case slices.Contains(g.Replicas, c.Name):
		return c.Node(c.Name)
	}
	return c.Node(g.Replicas[max(0, slices.IndexFunc(g.Replicas, func(name string) bool { return c.Node(name).Up }))])
}

// State is what clients are told about the slots of a group, in the words of CLUSTER INFO.
type State int

const (
	SlotsOK    State = iota // a node leads it
	SlotsPFail              // an election is on: calls wait for it
	SlotsFail               // fewer than a majority of its nodes are up: calls are refused
)

// State returns the state of a group. If it is SlotsFail, CLUSTER NODES and SHARDS mark the nodes
// that are not up.
func (c *Cluster) State(g *Group) State {
	up, nodes := 0, 0
	for i := range c.Nodes {
		if n := &c.Nodes[i]; n.Name == g.Leader || slices.Contains(g.Replicas, n.Name) {
			nodes++
			up += digit(n.Up)
		}
	}
	switch leader := c.Node(g.Leader); {
	case 2*up <= nodes:
		return SlotsFail
	case leader == nil || !leader.Up:
		return SlotsPFail
	}
	return SlotsOK
}

// Slots returns the ranges of slots for which Shown returns a node.
func (c *Cluster) Slots(n *Node) (list []slot.Range) {
	for i := range c.Groups {
		g := &c.Groups[i]
		if c.Shown(g) != n {
			continue
		}
		if last := len(list) - 1; last >= 0 && list[last].Last+1 == g.First {
			list[last].Last = g.Last
		} else {
			list = append(list, slot.Range{First: g.First, Last: g.Last})
		}
	}
	return list
}

// Acknowledged returns how many other nodes have a change for certain when its call is answered, in
// each group that this node knows: with the leader they are a majority.
func (c *Cluster) Acknowledged() int {
	fewest := 0
	for i := range c.Groups {
		if voters := c.Groups[i].Voters; voters > 0 && (fewest == 0 || voters < fewest) {
			fewest = voters
		}
	}
	return fewest / 2
}
