package command

import (
	"context"

	"rlserver/cluster/overview"
	"rlserver/engine"
	"rlserver/engine/policy"
	"rlserver/internal/clock"
)

// Cluster is the cluster of which the server is a node.
type Cluster interface {
	// View returns the nodes and groups for clients, without the figures of the groups.
	View() *overview.Cluster
	// Overview is View with all figures.
	Overview() *overview.Cluster
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

// Alone is the Cluster of a server that is alone: it has no commands about one.
type Alone struct{ Cluster }

// View implements Cluster: there are no nodes. So does Overview.
func (Alone) View() *overview.Cluster     { return new(overview.Cluster) }
func (Alone) Overview() *overview.Cluster { return new(overview.Cluster) }

// InCluster reports whether the server is a node of a cluster.
func (e *Env) InCluster() bool { return e.Mode == "cluster" }

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
