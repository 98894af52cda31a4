package main

import (
	"context"
	"errors"
	"time"

	"rlserver/cluster"
	"rlserver/cluster/group"
	"rlserver/cluster/overview"
	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/engine/background"
	"rlserver/resp"
)

// groupShards is how many shards the engine of a group has: a node has several groups.
const groupShards = 16

// clusterParts are the parts of a node. It implements mode and resp.Cluster.
type clusterParts struct {
	p             *parts
	engine        engine.Options
	hold          time.Duration
	*cluster.Node // nil until it is opened
}

// begun starts the background work of a partition, which ends with it.
func (c *clusterParts) begun(p *group.Partition) {
	work := background.Start(p.Engine, background.Options{
		Now: p.Clock.Now, Expire: c.p.settings.ActiveExpiry,
		Refused: func() error {
			if !p.Leads() {
				return slot.ErrNoLeader
			}
			return nil
		},
	})
	go func() {
		<-p.Ended()
		work.Stop()
	}()
	if p.Group == policyGroup && c.p.file != nil {
		go c.setPoliciesOf(p)
	}
}

// policyGroup is the group whose leader changes the policies.
const policyGroup = 0

// setPoliciesOf sets the policies of the file when this node begins to serve a partition, that of
// policyGroup.
func (c *clusterParts) setPoliciesOf(p *group.Partition) {
	for !p.Leads() {
		select {
		case <-p.Ended():
			return
		case <-time.After(time.Millisecond):
		}
	}
	c.p.file.SetAgain()
}

// Groups implements resp.Cluster.
func (c *clusterParts) Groups() int {
	if c.Node == nil { // it is being opened
		return 0
	}
	if m := c.Node.Map(); m != nil {
		return m.Groups()
	}
	return 0
}

// Lead implements resp.Cluster.
func (c *clusterParts) Lead(number int) (led resp.Partition, err error) {
	var m *cluster.Member
	if g := c.Node.Group(number); g != nil {
		p, err := g.Leading()
		if err == nil {
			return resp.Partition{Engine: p.Engine, Clock: p.Clock, Leadership: p}, nil
		}
		if moved, ok := errors.AsType[*slot.MovedError](err); ok {
			m = c.Node.Map().Member(moved.Node)
		}
	}
	if m == nil {
		m = c.Node.Leader(number)
	}
	if m != nil && m.Name != c.Node.Name() {
		return led, movedTo(m)
	}
	return led, slot.ErrNoLeader
}

// Await implements resp.Cluster.
func (c *clusterParts) Await(ctx context.Context, number int) (resp.Partition, error) {
	ctx, cancel := context.WithTimeout(ctx, c.hold)
	defer cancel()
	return c.await(ctx, number)
}

func (c *clusterParts) await(ctx context.Context, number int) (resp.Partition, error) {
	for {
		p, err := c.Lead(number)
		if err != slot.ErrNoLeader || ctx.Err() != nil {
			return p, err
		}
		c.Node.AwaitChange(ctx, number)
	}
}

// Leader implements forward.Nodes.
func (c *clusterParts) Leader(ctx context.Context, number int) (node string, err error) {
	_, err = c.await(ctx, number)
	if moved, ok := errors.AsType[*slot.MovedError](err); ok {
		return moved.Node, nil
	}
	return c.Node.Name(), err
}

// ChangeUsers implements resp.Cluster.
func (c *clusterParts) ChangeUsers(change []byte) (deleted int, err error) {
	deleted, refused, err := c.Node.ChangeUsers(change, c.hold)
	switch {
	case refused:
		err = engine.Error(err.Error())
	case err != nil:
		err = engine.Error("TRYAGAIN the users may have been changed or not: " + err.Error())
	}
	return deleted, err
}

func movedTo(m *cluster.Member) *slot.MovedError {
	n := m.Overview()
	return &slot.MovedError{Node: n.Name, Address: n.Address(false), TLSAddress: n.Address(true)}
}

// View implements resp.Cluster.
func (c *clusterParts) View() *overview.Cluster { return c.Node.View(c.hold) }

// OtherNodes implements resp.Cluster.
func (c *clusterParts) OtherNodes() []string { return c.Others(c.hold) }

// Overview implements resp.Cluster.
func (c *clusterParts) Overview() *overview.Cluster {
	o := c.Node.Overview(c.hold)
	for i := range o.Groups {
		o.Groups[i].GroupCounts = c.p.server.Stats.Group(i).Snapshot()
	}
	o.Proxy = c.p.server.ProxyCounts()
	return o
}

// HandOver implements resp.Cluster.
func (c *clusterParts) HandOver(ctx context.Context) error {
	return c.Node.HandOver(ctx, "CLUSTER FAILOVER")
}

// Drain implements resp.Cluster.
func (c *clusterParts) Drain(ctx context.Context) error {
	err := c.Node.Drain(ctx, "CLUSTER DRAIN")
	if err != nil {
		c.p.log.Warn("not all groups were handed over: the node goes on trying", "because", err)
		return err
	}
	c.p.log.Info("this node leads no group any more, and gets none until it is started again")
	return nil
}
