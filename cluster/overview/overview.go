package overview

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"rlserver/cluster/slot"
	"rlserver/internal/stats"
)

// The roles of a node in a group.
const (
	Leader    = "leader"
	Follower  = "follower"
	Candidate = "candidate" // an election is on
	Broken    = "broken"    // the replica cannot be used
	None      = "none"      // the node has no replica
)

// Roles has all roles.
var Roles = []string{Leader, Follower, Candidate, Broken, None}

// Cluster is a cluster as one of its nodes knows it.
type Cluster struct {
	Name   string // of this node
	Nodes  []Node // none until the cluster is made
	Groups []Group
	Proxy  Proxy

	MapVersion uint64 // of the list of nodes and of their replicas
	Moves      int    // groups whose replicas are being moved
	Drained    bool   // this node leads nothing until it is started again, if others can

	Timeout       time.Duration // --cluster-timeout
	NeededTimeout time.Duration // what round trips and this node's disk need, 0: not known yet
}

// Proxy is what this node has passed on to others, for clients of its --proxy-port.
type Proxy struct {
	Clients   int64 // that are connected
	LinksIn   int64 // connections over which other nodes pass calls on to this one
	LinksOut  int64 // connections to other nodes
	Calls     int64 // that were sent to other nodes, without those sent again
	Again     int64 // that were sent again, after a refusal
	Unknown   int64 // whose outcome is unknown
	Failed    int64 // that found no leader in time, or no link
	LinkWaits int64 // that waited for a link, or were refused one
}

// Node is a node of the cluster.
type Node struct {
	Name, ID string // the id has 40 hex digits
	Host     string // for clients
	Port     int    // for clients without TLS; 0: no port
	TLSPort  int    // for clients with TLS; 0: no port
	Bus      string // for other nodes, host:port
	Version  string
	Leaving  bool          // its replicas are moved to others, then it is no member
	Up       bool          // it is this node, or has reported a short time ago
	Heard    time.Duration // how long ago; negative: it was not heard since the start
	ClockOff bool          // its system clock is wrong, and not followed
	// how long a message there and back takes, and a sync of its disk; 0: it is not known
	RoundTrip, SyncTime time.Duration
	Leads               int // groups
	Replicas            int // of groups
}

// HeardAgo returns how many ms ago the node was heard; -1: not since the start.
func (n *Node) HeardAgo() int64 {
	if n.Heard < 0 { // also by less than a millisecond
		return -1
	}
	return n.Heard.Milliseconds()
}

// Group is a group of slots.
type Group struct {
	Number      int
	First, Last int // slots
	Leader      string
	Replicas    []string // names of nodes
	Voters      int      // of which a majority agrees; 0: this node does not know it
	Role        string   // of this node
	Fault       string   // why the replica is broken
	Disk        error    // why the last entry could not be stored; nil: it was
	// AtRisk is why the group may not survive the loss of any one node, or why the replica that
	// this node should have does not take part; "": neither
	AtRisk string

	// What follows is of this node's replica.
	Term       uint64
	LogEnd     uint64        // index of the last entry of the log
	Committed  uint64        // of the last one that is known to be committed
	Applied    uint64        // of the last one that is applied
	LagEntries uint64        // of the leader's log that are not applied here
	Lag        time.Duration // for how long the oldest of them is missing, or no leader is heard
	Policies   string        // names the policies of the node, the same for the same; "0": none
	Counts
}

// Counts are counted by this node since its start; those of calls since CONFIG RESETSTAT.
type Counts struct {
	ReplicaCounts
	stats.GroupCounts
}

// ReplicaCounts are what a replica of a group counts.
type ReplicaCounts struct {
	ElectionsCalled int64 // by this node
	ElectionsWon    int64
	LeaderChanges   int64 // how often this node has learned of another leader
	HandOvers       int64 // of leadership by this node
	Rebuilds        int64 // of the engine, after what it had decided was not committed
	Snapshots       int64
	FailedSnapshots int64
	Digests         int64 // times that the state was compared, and most replicas had the same
}

func (c *Counts) add(d *Counts) {
	c.ElectionsCalled += d.ElectionsCalled
	c.ElectionsWon += d.ElectionsWon
	c.LeaderChanges += d.LeaderChanges
	c.HandOvers += d.HandOvers
	c.Rebuilds += d.Rebuilds
	c.Snapshots += d.Snapshots
	c.FailedSnapshots += d.FailedSnapshots
	c.Digests += d.Digests
	c.Held += d.Held
	c.Holding += d.Holding
	c.Refused += d.Refused
	c.Uncertain += d.Uncertain
	c.Repeat += d.Repeat
}

// Totals are sums over the groups.
type Totals struct {
	Counts
	Led, Replicas, WithoutLeader, Broken int // groups
	LagEntries                           uint64
	Lag                                  time.Duration // the longest
}

// Totals returns the sums over all groups.
func (c *Cluster) Totals() (t Totals) {
	for i := range c.Groups {
		g := &c.Groups[i]
		t.add(&g.Counts)
		t.LagEntries += g.LagEntries
		t.Lag = max(t.Lag, g.Lag)
		if g.Role == Leader {
			t.Led++
		}
		if g.Role != None {
			t.Replicas++
		}
		if g.Role == Broken {
			t.Broken++
		}
		if g.Leader == "" {
			t.WithoutLeader++
		}
	}
	return t
}

// Ready returns why no further node should be stopped now: this one is not ready for traffic, one
// of its replicas does not vote or lags, or a group might not survive the loss of any one node.
// nil: the next node may be stopped. With one or two nodes, which cannot be spared, all replicas
// have to take part.
func (c *Cluster) Ready() error {
	if err := c.ReadyForTraffic(); err != nil {
		return err
	}
	for i := range c.Groups {
		if g := &c.Groups[i]; g.AtRisk != "" {
			return fmt.Errorf("group %d: %s", g.Number, g.AtRisk)
		}
	}
	return nil
}

// ReadyForTraffic returns why the node should get no calls: a group of which it has a replica has
// no leader, or the replica cannot be used. nil: it should.
func (c *Cluster) ReadyForTraffic() error {
	if len(c.Groups) == 0 {
		return errors.New("the cluster is not made yet: the log says for which nodes this one waits")
	}
	for i := range c.Groups {
		switch g := &c.Groups[i]; {
		case g.Role == Broken:
			return fmt.Errorf("the replica of group %d is broken: %s", g.Number, g.Fault)
		case g.Role != None && g.Disk != nil:
			return fmt.Errorf("the log of group %d cannot be written: %w", g.Number, g.Disk)
		case g.Role != None && g.Leader == "":
			return fmt.Errorf("group %d has no leader that this node hears", g.Number)
		}
	}
	return nil
}

// Disk returns why a log of the node cannot be written, nil if all can.
func (c *Cluster) Disk() error {
	for i := range c.Groups {
		if err := c.Groups[i].Disk; err != nil {
			return err
		}
	}
	return nil
}

// WriteCluster writes the fields of INFO cluster: the nodes, and the sums over the groups.
func (c *Cluster) WriteCluster(write func(name string, value any)) {
	t := c.Totals()
	up, leaving, off := 0, 0, 0
	for i := range c.Nodes {
		n := &c.Nodes[i]
		up, leaving, off = up+digit(n.Up), leaving+digit(n.Leaving), off+digit(n.ClockOff)
	}
	write("cluster_node", c.Name)
	write("cluster_nodes", len(c.Nodes))
	write("cluster_nodes_up", up)
	write("cluster_nodes_leaving", leaving)
	write("cluster_nodes_clock_off", off)
	write("cluster_timeout_ms", c.Timeout.Milliseconds())
	write("cluster_timeout_needed_ms", c.NeededTimeout.Milliseconds())
	write("cluster_map_version", c.MapVersion)
	write("cluster_moves_in_progress", c.Moves)
	write("cluster_drained", digit(c.Drained))
	why := c.Ready()
	write("cluster_ready", digit(why == nil))
	if why != nil {
		write("cluster_not_ready_because", why)
	}
	write("cluster_groups", len(c.Groups))
	write("cluster_groups_replicated", t.Replicas)
	write("cluster_groups_led", t.Led)
	write("cluster_groups_without_leader", t.WithoutLeader)
	write("cluster_groups_broken", t.Broken)
	write("cluster_elections_called", t.ElectionsCalled)
	write("cluster_elections_won", t.ElectionsWon)
	write("cluster_leader_changes", t.LeaderChanges)
	write("cluster_handovers", t.HandOvers)
	write("cluster_rebuilds", t.Rebuilds)
	write("cluster_snapshots", t.Snapshots)
	write("cluster_failed_snapshots", t.FailedSnapshots)
	write("cluster_digests", t.Digests)
	write("cluster_holding_calls", t.Holding)
	write("cluster_held_calls", t.Held)
	write("cluster_refused_calls", t.Refused)
	write("cluster_uncertain_replies", t.Uncertain)
	write("cluster_tryagain_replies", t.Repeat)
	write("proxy_clients", c.Proxy.Clients)
	write("proxy_links_in", c.Proxy.LinksIn)
	write("proxy_links_out", c.Proxy.LinksOut)
	write("proxy_calls", c.Proxy.Calls)
	write("proxy_calls_again", c.Proxy.Again)
	write("proxy_calls_unknown", c.Proxy.Unknown)
	write("proxy_calls_failed", c.Proxy.Failed)
	write("proxy_link_waits", c.Proxy.LinkWaits)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		write(fmt.Sprint("node", i), fmt.Sprintf("name=%s,address=%s,up=%d,leaving=%d,heard_ms=%d,leads=%d,"+
			"replicas=%d,clock_off=%d,round_trip_us=%d,sync_us=%d,version=%s", n.Name, n.Address(false), digit(n.Up),
			digit(n.Leaving), n.HeardAgo(), n.Leads, n.Replicas, digit(n.ClockOff), n.RoundTrip.Microseconds(),
			n.SyncTime.Microseconds(), n.Version))
	}
}

// WriteReplication writes the fields of INFO replication about the groups.
func (c *Cluster) WriteReplication(write func(name string, value any)) {
	t := c.Totals()
	write("lag_entries", t.LagEntries)
	write("lag_ms", t.Lag.Milliseconds())
	for i := range c.Groups {
		g := &c.Groups[i]
		line := fmt.Sprintf("slots=%d-%d,role=%s,leader=%s", g.First, g.Last, g.Role, g.Leader)
		if g.Role != None {
			line += fmt.Sprintf(",term=%d,committed=%d,log_end=%d,applied=%d,lag_entries=%d,lag_ms=%d,replicas=%d,"+
				"elections_called=%d,elections_won=%d,leader_changes=%d,handovers=%d,rebuilds=%d,snapshots=%d,"+
				"failed_snapshots=%d,digests=%d,policies=%s",
				g.Term, g.Committed, g.LogEnd, g.Applied, g.LagEntries, g.Lag.Milliseconds(), len(g.Replicas),
				g.ElectionsCalled, g.ElectionsWon, g.LeaderChanges, g.HandOvers, g.Rebuilds, g.Snapshots,
				g.FailedSnapshots, g.Digests, g.Policies)
		}
		line += fmt.Sprintf(",holding_calls=%d,held_calls=%d,refused_calls=%d,uncertain_replies=%d,tryagain_replies=%d",
			g.Holding, g.Held, g.Refused, g.Uncertain, g.Repeat)
		write(fmt.Sprint("group", g.Number), line)
	}
}

func digit(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

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
