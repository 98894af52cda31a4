package clustering

import (
	"context"
	"slices"
	"time"

	"rlserver/cluster/overview"
	"rlserver/engine"
	"rlserver/resp/command"
)

const (
	handOverAfter = 10 * time.Second // CLUSTER FAILOVER and CLUSTER DRAIN give up
	errAlone      = engine.Error("ERR no other node has the slots of this one and could take over: CLUSTER NODES " +
		"shows the nodes, and a node that is started with --join joins them")
	errNotMade         = engine.Error("ERR the cluster is not made yet: the log says for which nodes this one waits")
	errFailoverInMulti = engine.Error("ERR CLUSTER FAILOVER waits for other nodes: it cannot be called inside MULTI")
	errDrainInMulti    = engine.Error("ERR CLUSTER DRAIN waits for other nodes: it cannot be called inside MULTI")
)

// clusterFailover handles CLUSTER FAILOVER: this node hands over all groups that it leads. It
// replies when that is so, or names those that it could not hand over.
func clusterFailover(c *command.Call) error {
	if c.Args.Left() > 1 {
		return c.WrongSubcommandArity()
	}
	if !c.Args.Word("FORCE") {
		c.Args.Word("TAKEOVER")
	}
	if err := c.Args.End(); err != nil {
		return err
	}
	v := viewOf(c)
	switch {
	case c.Executing:
		return errFailoverInMulti
	case alone(v):
		return errAlone
	}
	ctx, cancel := context.WithTimeout(context.Background(), handOverAfter)
	defer cancel()
	if err := c.Env.Cluster.HandOver(ctx); err != nil {
		c.Env.Log.Warn("not all groups were handed over", "error", err)
		return engine.Error("ERR this node still leads " + err.Error() + ". It goes on trying")
	}
	return c.ReplyOK(nil)
}

// alone reports whether no other node has a replica of any group.
func alone(v *overview.Cluster) bool {
	return len(v.Groups) > 0 && !slices.ContainsFunc(v.Groups, func(g overview.Group) bool {
		return len(g.Replicas) > 1 || len(g.Replicas) == 1 && g.Leader != "" && g.Leader != g.Replicas[0]
	})
}

// clusterDrain handles CLUSTER DRAIN: this node leads no group any more until it is started again.
// It replies when that is so.
func clusterDrain(c *command.Call) error {
	v := viewOf(c)
	switch {
	case c.Executing:
		return errDrainInMulti
	case len(v.Groups) == 0:
		return errNotMade
	case alone(v):
		return errAlone
	}
	ctx, cancel := context.WithTimeout(context.Background(), handOverAfter)
	defer cancel()
	if err := c.Env.Cluster.Drain(ctx); err != nil {
		return engine.Error("ERR this node still leads " + err.Error() +
			". It goes on trying: CLUSTER DRAIN again waits for it")
	}
	return c.ReplyOK(nil)
}
