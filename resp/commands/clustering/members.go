package clustering

import (
	"context"
	"net"
	"slices"
	"strconv"
	"time"

	"rlserver/cluster/overview"
	"rlserver/engine"
	"rlserver/resp/command"
)

const (
	errInMulti = engine.Error("ERR the nodes of a cluster cannot be changed inside MULTI")
	// busOffset is the difference between the port for clients and that between nodes, if the call
	// names none.
	busOffset = 10000
)

// clusterMeet handles CLUSTER MEET host port [cluster_bus_port]: the node there joins this cluster.
// It replies when that node has agreed to.
func clusterMeet(c *command.Call) error {
	if c.Args.Left() > 3 {
		return c.WrongSubcommandArity()
	}
	host, word := string(c.Args.Next()), string(c.Args.Next())
	port, err := strconv.Atoi(word)
	if err != nil {
		return engine.Error("ERR Invalid TCP base port specified: " + word)
	}
	bus := port + busOffset
	if c.Args.More() {
		word := string(c.Args.Next())
		if bus, err = strconv.Atoi(word); err != nil {
			return engine.Error("ERR Invalid TCP bus port specified: " + word)
		}
	}
	switch {
	case host == "" || port <= 0 || port > 65535 || bus <= 0 || bus > 65535:
		return engine.Error("ERR Invalid node address specified: " + host + ":" + word)
	case c.Executing:
		return errInMulti
	}
	return reply(c, c.Env.Cluster.Meet(context.Background(), net.JoinHostPort(host, strconv.Itoa(bus))))
}

// clusterForget handles CLUSTER FORGET node: the groups of the node, which is named by its id or
// its name, are moved to others in the background, and then it is no member any more.
func clusterForget(c *command.Call) error {
	node := string(c.Args.Next())
	if c.Executing {
		return errInMulti
	}
	return reply(c, c.Env.Cluster.Forget(node))
}

func reply(c *command.Call, err error) error {
	if err != nil {
		return engine.Error("ERR " + err.Error())
	}
	return c.ReplyOK(nil)
}

// clusterReplicas handles CLUSTER REPLICAS node-id and CLUSTER SLAVES node-id. As in CLUSTER NODES,
// all nodes are masters, none a replica of another.
func clusterReplicas(c *command.Call) error {
	if _, err := nodeOf(c); err != nil {
		return err
	}
	c.Reply.Array(0)
	return nil
}

// clusterCountReports handles CLUSTER COUNT-FAILURE-REPORTS node-id. The only report that a node
// has is its own.
func clusterCountReports(c *command.Call) error {
	n, err := nodeOf(c)
	if err != nil {
		return err
	}
	return c.ReplyFlag(!n.Up, nil)
}

// nodeOf returns the node that the next argument is the id of.
func nodeOf(c *command.Call) (*overview.Node, error) {
	id, v := string(c.Args.Next()), viewOf(c)
	n := v.NodeByID(id)
	if n == nil {
		return nil, engine.Error("ERR Unknown node " + id)
	}
	return n, nil
}

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
