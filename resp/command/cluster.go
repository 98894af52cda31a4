package command

import (
	"context"
	"slices"

	"rlserver/clock"
	"rlserver/cluster/overview"
	"rlserver/cluster/slot"
	"rlserver/engine"
)

// Cluster is the cluster that the server is a node of.
type Cluster interface {
	// View returns the cluster as clients are to see it.
	View() ClusterView
	// Overview returns what this node knows about the cluster, for INFO.
	Overview() *overview.Cluster
	// HandOver makes other nodes lead the groups that this one leads.
	HandOver(ctx context.Context) error
	// Meet has the node at an address, host:port between nodes, join the cluster.
	Meet(ctx context.Context, address string) error
	// Forget removes a node, by its name or id, in the background.
	Forget(node string) error
}

// Keyspace is an engine that calls on this node run on, with its clock. A server alone has one. A
// node of a cluster has one for each group of slots that it leads.
type Keyspace struct {
	Group  int // its number; 0 for a server alone
	Engine *engine.Engine
	Time   *clock.Clock
}

// ClusterView is the cluster as clients are to see it.
type ClusterView struct {
	Me    string // id of this node
	Nodes []ClusterNode
	// Groups has the ids of the nodes of each group, the leader's first; "": none leads.
	Groups [][]string
	Term   uint64 // the latest of all groups
}

// ClusterNode is a node of the cluster.
type ClusterNode struct {
	ID      string // 40 hex digits
	Name    string
	Host    string
	Port    int // for clients without TLS; 0: there is none
	TLSPort int // for clients with TLS; 0: there is none
	BusPort int
	Up      bool // it was heard a short time ago
}

// PortFor returns the port for a client with TLS or without. Where there is only the other one, it
// is that.
func (n *ClusterNode) PortFor(tls bool) int {
	if tls && n.TLSPort != 0 || n.Port == 0 {
		return n.TLSPort
	}
	return n.Port
}

// Node returns a node by its id, nil if the cluster does not have it.
func (v *ClusterView) Node(id string) *ClusterNode {
	if i := slices.IndexFunc(v.Nodes, func(n ClusterNode) bool { return n.ID == id }); i >= 0 {
		return &v.Nodes[i]
	}
	return nil
}

// Shown returns the ids of the nodes of a group, first the one that clients are to ask. While none
// leads, that is this node, or else another one that is up: calls wait there for the election.
// Clients do not expect slots that no node has.
func (v *ClusterView) Shown(group int) []string {
	nodes := v.Groups[group]
	if nodes[0] != "" || len(nodes) == 1 {
		return nodes
	}
	shown := slices.Clone(nodes[1:])
	at := slices.Index(shown, v.Me)
	if at < 0 {
		at = max(0, slices.IndexFunc(shown, func(id string) bool { return v.Node(id).Up }))
	}
	shown[0], shown[at] = shown[at], shown[0]
	return shown
}

// Slots returns the ranges of slots for which clients are to ask a node.
func (v *ClusterView) Slots(id string) (list []slot.Range) {
	for g := range v.Groups {
		if v.Shown(g)[0] != id {
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
