package command

import (
	"context"
	"slices"

	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/engine/policy"
	"rlserver/internal/clock"
)

// Cluster is the cluster of which the server is a node.
type Cluster interface {
	// View returns the state of the cluster for clients.
	View() ClusterView
	// Refusal returns why there are no commands about a cluster, or nil.
	Refusal() error
	// WriteInfo writes the fields of a cluster in a section of INFO.
	WriteInfo(section string, write func(name string, value any))
	// SetPolicies is Engine.SetPolicies. In a cluster it is called on the node that leads group 0,
	// and returns when all groups use them, or after the hold time. Keys are dropped later, when
	// they are met.
	SetPolicies(e *Env, list []*policy.Policy) (engine.PolicyChanges, error)
	// DeletePolicy is Engine.DeletePolicy in the same way.
	DeletePolicy(e *Env, name string) (found bool, err error)
	// HandOver hands over the groups that this node leads to other nodes. It tries once. The error
	// names the groups that it still leads, and why.
	HandOver(ctx context.Context) error
	// Drain has this node lead no group until it is started again. It returns when it leads none
	// or, when the context ends, the groups that it leads and why.
	Drain(ctx context.Context) error
	// Meet has the node at an address, host:port between nodes, join the cluster.
	Meet(ctx context.Context, address string) error
	// Forget removes a node, by its name or id, in the background.
	Forget(node string) error
}

// Alone is the Cluster of a server that is alone: no other node has or gets anything.
type Alone struct{}

const errAlone = engine.Error("ERR This instance has cluster support disabled")

// Refusal implements Cluster.
func (Alone) Refusal() error { return errAlone }

// WriteInfo implements Cluster.
func (Alone) WriteInfo(section string, write func(name string, value any)) {
	if section == "cluster" {
		write("cluster_enabled", 0)
	}
}

// View implements Cluster. So do the following.
func (Alone) View() (none ClusterView)           { return none }
func (Alone) HandOver(context.Context) error     { return errAlone }
func (Alone) Drain(context.Context) error        { return errAlone }
func (Alone) Meet(context.Context, string) error { return errAlone }
func (Alone) Forget(string) error                { return errAlone }

// SetPolicies implements Cluster.
func (Alone) SetPolicies(e *Env, list []*policy.Policy) (engine.PolicyChanges, error) {
	return e.Engine.SetPolicies(e.Clock(), list)
}

// DeletePolicy implements Cluster.
func (Alone) DeletePolicy(e *Env, name string) (found bool, err error) {
	return e.Engine.DeletePolicy(e.Clock(), name)
}

// Keyspace is an engine on which calls run on this node, with its clock. Without a cluster there is
// one, otherwise one for each group of slots that this node leads.
type Keyspace struct {
	Group  int // number of the group; 0 without a cluster
	Engine *engine.Engine
	Time   *clock.Clock
}

// ClusterView is the state of the cluster for clients.
type ClusterView struct {
	Me    string // id of this node
	Nodes []ClusterNode
	// Groups has the ids of the nodes of each group, the leader's first, which is "" if there is no
	// leader.
	Groups [][]string
	// Voters has the number of nodes of each group of which a majority agrees, 0 if this node does
	// not know it.
	Voters []int
	Term   uint64 // largest term of all groups
}

// ClusterNode is a node of the cluster.
type ClusterNode struct {
	ID      string // 40 hex digits
	Name    string
	Host    string
	Port    int // for clients without TLS; 0: no port
	TLSPort int // for clients with TLS; 0: no port
	BusPort int
	Up      bool // this node has heard from it recently
}

// PortFor returns the port for a client with or without TLS. If the node has only the other port,
// PortFor returns that one.
func (n *ClusterNode) PortFor(tls bool) int {
	if tls && n.TLSPort != 0 || n.Port == 0 {
		return n.TLSPort
	}
	return n.Port
}

// Node returns the node of an id, or nil.
func (v *ClusterView) Node(id string) *ClusterNode {
	if i := slices.IndexFunc(v.Nodes, func(n ClusterNode) bool { return n.ID == id }); i >= 0 {
		return &v.Nodes[i]
	}
	return nil
}

// Others returns how many other nodes are up.
func (v *ClusterView) Others() (up int) {
	for i := range v.Nodes {
		if n := &v.Nodes[i]; n.Up && n.ID != v.Me {
			up++
		}
	}
	return up
}

// Shown returns the id of the node of a group for clients: its leader. Without one it is this node
// if it is a replica, otherwise a replica that is up: calls wait there for the election. Clients do
// not expect slots without a node. The other replicas are not shown: clients take a node that is
// the replica of any slots for one that leads none.
func (v *ClusterView) Shown(group int) string {
	leader, replicas := v.Groups[group][0], v.Groups[group][1:]
	switch {
	case leader != "" || len(replicas) == 0:
		return leader
	case slices.Contains(replicas, v.Me):
		return v.Me
	}
	return replicas[max(0, slices.IndexFunc(replicas, func(id string) bool { return v.Node(id).Up }))]
}

// GroupState is what clients are told about the slots of a group, in the words of CLUSTER INFO.
type GroupState int

const (
	SlotsOK    GroupState = iota // a node leads it
	SlotsPFail                   // an election is on: calls wait for it
	SlotsFail                    // fewer than a majority of its nodes are up: calls are refused
)

// State returns the state of a group. If it is SlotsFail, CLUSTER NODES and SHARDS mark the nodes
// that are not up.
func (v *ClusterView) State(group int) GroupState {
	up, nodes := 0, 0
	for _, id := range v.Groups[group] {
		if id == "" {
			continue
		}
		nodes++
		if n := v.Node(id); n != nil && n.Up {
			up++
		}
	}
	switch leader := v.Node(v.Groups[group][0]); {
	case 2*up <= nodes:
		return SlotsFail
	case leader == nil || !leader.Up:
		return SlotsPFail
	}
	return SlotsOK
}

// Slots returns the ranges of slots for which Shown returns a node.
func (v *ClusterView) Slots(id string) (list []slot.Range) {
	for g := range v.Groups {
		if v.Shown(g) != id {
			continue
		}
		r := slot.RangeOf(g, len(v.Groups))
		if n := len(list); n > 0 && list[n-1].Last+1 == r.First {
			list[n-1].Last = r.Last
		} else {
			list = append(list, r)
		}
	}
	return list
}

// Acknowledged returns how many other nodes have a change for certain when its call is answered, in
// each group that this node knows: with the leader they are a majority.
func (v *ClusterView) Acknowledged() int {
	fewest := 0
	for _, voters := range v.Voters {
		if voters > 0 && (fewest == 0 || voters < fewest) {
			fewest = voters
		}
	}
	return fewest / 2
}
