package clustering

import (
	"fmt"
	"math"
	"net"
	"strings"

	"rlserver/cluster/overview"
	"rlserver/cluster/slot"
	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

func init() {
	command.Register("cluster",
		&command.Command{Name: "cluster", Arity: -2, Subs: []*command.Command{
			{Name: "count-failure-reports", Arity: 3, Flags: command.Admin | command.Stale,
				Run: inCluster(clusterCountReports)},
			{Name: "countkeysinslot", Arity: 3, Flags: command.Stale, Run: inCluster(clusterCountKeys)},
			{Name: "drain", Arity: 2, Flags: command.Admin | command.NoAsyncLoading | command.Stale,
				Since: "1.0.0", Complexity: "O(G) with G the groups of slots, and up to 10 seconds",
				Summary: "Has other nodes lead all slots until this node is started again, and replies " +
					"when they do. SIGTERM does the same", Run: inCluster(clusterDrain)},
			{Name: "failover", Arity: -2, Flags: command.Admin | command.NoAsyncLoading | command.Stale,
				Run: inCluster(clusterFailover)},
			{Name: "forget", Arity: 3, Flags: command.Admin | command.NoAsyncLoading | command.Stale,
				Run: inCluster(clusterForget)},
			{Name: "getkeysinslot", Arity: 4, Flags: command.Stale, Run: inCluster(clusterGetKeys)},
			{Name: "help", Arity: 2, Flags: command.Loading | command.Stale, Run: inCluster(command.Help)},
			{Name: "info", Arity: 2, Flags: command.Stale, Run: inCluster(clusterInfo)},
			{Name: "keyslot", Arity: 3, Flags: command.Stale, Run: inCluster(clusterKeySlot)},
			{Name: "meet", Arity: -4, Flags: command.Admin | command.NoAsyncLoading | command.Stale,
				Run: inCluster(clusterMeet)},
			{Name: "myid", Arity: 2, Flags: command.Stale, Run: inCluster(clusterMyID)},
			{Name: "nodes", Arity: 2, Flags: command.Stale, Run: inCluster(clusterNodes)},
			{Name: "replicas", Arity: 3, Flags: command.Admin | command.Stale, Run: inCluster(clusterReplicas)},
			{Name: "saveconfig", Arity: 2, Flags: command.Admin | command.NoAsyncLoading | command.Stale,
				Run: inCluster(accept)},
			{Name: "shards", Arity: 2, Flags: command.Stale, Run: inCluster(clusterShards)},
			{Name: "slaves", Arity: 3, Flags: command.Admin | command.Stale, Run: inCluster(clusterReplicas)},
			{Name: "slots", Arity: 2, Flags: command.Stale, Run: inCluster(clusterSlots)},
		}},
		&command.Command{Name: "readonly", Arity: 1, Flags: command.Fast | command.Loading | command.Stale,
			Categories: "connection", Run: inCluster(accept)},
		&command.Command{Name: "readwrite", Arity: 1, Flags: command.Fast | command.Loading | command.Stale,
			Categories: "connection", Run: inCluster(accept)},
		&command.Command{Name: "asking", Arity: 1, Flags: command.Fast, Categories: "connection",
			Run: inCluster(accept)},
	)
}

const (
	errNoCluster = engine.Error("ERR This instance has cluster support disabled")

	errBadSlot = engine.Error("ERR Invalid slot")
	errBadKeys = engine.Error("ERR Invalid slot or number of keys")
)

func inCluster(run func(*command.Call) error) func(*command.Call) error {
	return func(c *command.Call) error {
		if !c.Env.InCluster() {
			return errNoCluster
		}
		return run(c)
	}
}

func viewOf(c *command.Call) *overview.Cluster { return c.Env.Cluster.View() }

// accept handles calls for which nothing is to be done. The state of the cluster is stored with
// each change.
func accept(c *command.Call) error {
	return c.ReplyOK(nil)
}

func clusterKeySlot(c *command.Call) error {
	return c.ReplyInteger(int64(slot.Of(c.Args.Next())), nil)
}

func clusterMyID(c *command.Call) error {
	id := ""
	v := viewOf(c)
	if n := v.Node(v.Name); n != nil {
		id = n.ID
	}
	c.Reply.BulkString(id)
	return nil
}

// clusterInfo handles CLUSTER INFO. It counts what CLUSTER NODES, SLOTS and SHARDS list.
func clusterInfo(c *command.Call) error {
	v := viewOf(c)
	var slots [overview.SlotsFail + 1]int
	assigned, size := 0, 0
	for g := range v.Groups {
		g := &v.Groups[g]
		slots[v.State(g)] += g.Last - g.First + 1
	}
	for i := range v.Nodes {
		led := v.Slots(&v.Nodes[i])
		for _, r := range led {
			assigned += r.Last - r.First + 1
		}
		size += min(1, len(led))
	}
	state := "ok"
	if assigned < slot.Count || slots[overview.SlotsFail] > 0 {
		state = "fail"
	}
	var b strings.Builder
	for _, f := range []struct {
		name  string
		value any
	}{
		{"state", state}, {"slots_assigned", assigned}, {"slots_ok", slots[overview.SlotsOK]},
		{"slots_pfail", slots[overview.SlotsPFail]}, {"slots_fail", slots[overview.SlotsFail]},
		{"known_nodes", len(v.Nodes)}, {"size", size}, {"current_epoch", v.Term()}, {"my_epoch", v.Term()},
	} {
		fmt.Fprintf(&b, "cluster_%s:%v\r\n", f.name, f.value)
	}
	c.Reply.BulkString(b.String())
	return nil
}

func clusterNodes(c *command.Call) error {
	v := viewOf(c)
	var b strings.Builder
	for i := range v.Nodes {
		n := &v.Nodes[i]
		flags, link := "master", "connected"
		if n.Name == v.Name {
			flags = "myself,master"
		} else if !n.Up {
			flags, link = "master,fail?", "disconnected"
		}
		port := n.PortFor(c.Conn.TLS())
		_, bus, _ := net.SplitHostPort(n.Bus)
		fmt.Fprintf(&b, "%s %s:%d@%s %s - 0 0 %d %s", n.ID, n.Host, port, bus, flags, v.Term(), link)
		for _, r := range v.Slots(n) {
			if r.First == r.Last {
				fmt.Fprintf(&b, " %d", r.First)
			} else {
				fmt.Fprintf(&b, " %d-%d", r.First, r.Last)
			}
		}
		b.WriteByte('\n')
	}
	c.Reply.BulkString(b.String())
	return nil
}

// clusterSlots handles CLUSTER SLOTS: the leader of each group of slots.
func clusterSlots(c *command.Call) error {
	v := viewOf(c)
	c.Reply.Array(len(v.Groups))
	for g := range v.Groups {
		g := &v.Groups[g]
		n := v.Shown(g)
		c.Reply.Array(3)
		c.Reply.Count(g.First)
		c.Reply.Count(g.Last)
		c.Reply.Array(4)
		c.Reply.BulkString(n.Host)
		c.Reply.Integer(int64(n.PortFor(c.Conn.TLS())))
		c.Reply.BulkString(n.ID)
		c.Reply.Array(0)
	}
	return nil
}

// clusterShards handles CLUSTER SHARDS. A shard is a node with the slots that it leads. As in
// Redis, a node that leads none is a shard without slots.
func clusterShards(c *command.Call) error {
	v := viewOf(c)
	c.Reply.Array(len(v.Nodes))
	for i := range v.Nodes {
		n := &v.Nodes[i]
		slots := v.Slots(n)
		c.Reply.Mapping(2)
		c.Reply.BulkString("slots")
		c.Reply.Array(2 * len(slots))
		for _, r := range slots {
			c.Reply.Integer(int64(r.First))
			c.Reply.Integer(int64(r.Last))
		}
		c.Reply.BulkString("nodes")
		c.Reply.Array(1)
		writeShardNode(&c.Reply, n)
	}
	return nil
}

func writeShardNode(r *wire.Reply, n *overview.Node) {
	health := "online"
	if !n.Up {
		health = "fail"
	}
	fields := []any{"id", n.ID}
	if n.Port != 0 {
		fields = append(fields, "port", n.Port)
	}
	if n.TLSPort != 0 {
		fields = append(fields, "tls-port", n.TLSPort)
	}
	command.Fields(r, append(fields, "ip", n.Host, "endpoint", n.Host, "role", "master", "replication-offset", 0,
		"health", health)...)
}

// keyspaceOf returns the keyspace of a slot if this node leads it, otherwise nil.
func keyspaceOf(c *command.Call, at int) *command.Keyspace {
	groups := len(viewOf(c).Groups)
	for _, k := range c.Env.Server.Keyspaces() {
		if k.Group == slot.Group(at, groups) {
			return &k
		}
	}
	return nil
}

func isSlot(n int64) bool { return 0 <= n && n < slot.Count }

// keysOf returns up to count names of keys in a slot.
func keysOf(at int, k *command.Keyspace, count int) (names []string) {
	if k == nil {
		return nil
	}
	tx := k.Engine.NewTx()
	for cursor := uint64(0); len(names) < count; {
		var ok bool
		cursor, ok = tx.Scan(k.Time.Now(), 0, cursor, 1000, func(name []byte, _ object.Type) {
			if slot.Of(name) == at && len(names) < count {
				names = append(names, string(name))
			}
		})
		if cursor == 0 || !ok {
			break
		}
	}
	return names
}

func clusterCountKeys(c *command.Call) error {
	at := c.Args.Integer()
	if err := c.Args.End(); err != nil {
		return err
	}
	if !isSlot(at) {
		return errBadSlot
	}
	return c.ReplyInteger(int64(len(keysOf(int(at), keyspaceOf(c, int(at)), math.MaxInt))), nil)
}

func clusterGetKeys(c *command.Call) error {
	at, count := c.Args.Integer(), c.Args.Integer()
	if err := c.Args.End(); err != nil {
		return err
	}
	if !isSlot(at) || count < 0 {
		return errBadKeys
	}
	names := keysOf(int(at), keyspaceOf(c, int(at)), int(count))
	c.Reply.Array(len(names))
	for _, name := range names {
		c.Reply.BulkString(name)
	}
	return nil
}

// ErrCrossSlot is Redis' error for keys in several slots.
const ErrCrossSlot = engine.Error("CROSSSLOT Keys in request don't hash to the same slot")

// ErrWholeKeyspace is the error of a command that needs all keys of the cluster.
const ErrWholeKeyspace = engine.Error("ERR this command is not available in a cluster: no node has all keys")

const errOtherSlots = engine.Error("CROSSSLOT the keys of one call have to be in one slot of the cluster: keys with " +
	"the same {tag} are, such as {user1}:minute and {user1}:day")

const errOtherNetworks = engine.Error("CROSSSLOT the policies count this address as networks in different " +
	"slots of the cluster: give them the same IP4 and IP6, or check them in one call each")

// SlotOf returns the slot of keys. ok is false if they are in several.
func SlotOf(keys []engine.Key) (at int, ok bool) {
	at = slot.Of(keys[0].Name)
	for i := range keys[1:] {
		if slot.Of(keys[1+i].Name) != at {
			return at, false
		}
	}
	return at, true
}

// CrossSlot returns the error for a call with keys in several slots, or in another one than those
// before it in a transaction: Redis' for commands that Redis has. For others it teaches.
func CrossSlot(p *command.Prepared, keys []engine.Key) error {
	_, together := SlotOf(keys)
	byPolicies := p.Command.HashKeys != nil && string(keys[0].Name) != string(p.NamedKey())
	switch {
	case byPolicies && !together: // they are of one id, so it is an address
		return errOtherNetworks
	case p.Command.Group == "ratelimit":
		return errOtherSlots
	}
	return ErrCrossSlot
}
