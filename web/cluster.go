package web

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"rlserver/cluster/overview"
)

var (
	clusterNodes = gauge("cluster_nodes", "Nodes of the cluster.")
	nodeUp       = gauge("cluster_node_up", "Whether this node has heard from a node recently.", "node")
	nodeLeads    = gauge("cluster_node_groups_led", "Groups that a node leads, as far as this node knows.", "node")
	groupCount   = gauge("cluster_groups", "Number of groups of slots.")

	clusterMoves   = gauge("cluster_moves_in_progress", "Groups whose replicas are not where they should be yet.")
	clusterDrained = gauge("cluster_drained", "Whether this node was drained: it leads nothing if others can.")
	clusterTimeout = gauge("cluster_timeout_seconds", "The setting cluster-timeout.")
	neededTimeout  = gauge("cluster_timeout_needed_seconds",
		"The cluster-timeout that the round trips between the nodes and the disk of this one need; 0: not known yet.")

	groupLeader = gauge("group_has_leader", "Whether this node knows a leader of a group.", "group")
	groupRole   = gauge("group_role",
		"1 for the role of this node in a group: leader, follower, candidate, broken or none.", "group", "role")
	groupTerm      = gauge("group_term", "Term of the group's log, which increases with each election.", "group")
	groupEnd       = gauge("group_log_end_index", "Index of the last entry of the group's log on this node.", "group")
	groupCommitted = gauge("group_committed_index", "Index of the last entry that is known to be committed.", "group")
	groupApplied   = gauge("group_applied_index", "Index of the last entry that this node has applied.", "group")
	groupEntries   = gauge("group_lag_entries",
		"Committed entries that this node has not applied.", "group")
	groupLag = gauge("group_lag_seconds",
		"For how long the oldest of these entries is missing or, while no leader is heard, since when.", "group")
	electionsCalled = counter("group_elections_called_total", "Elections that this node has called.", "group")
	electionsWon    = counter("group_elections_won_total", "Elections that this node has won.", "group")
	leaderChanges   = counter("group_leader_changes_total",
		"How often this node has learned of another leader of the group.", "group")
	handOvers = counter("group_handovers_total", "How often this node has handed leadership over.", "group")
	rebuilds  = counter(
		"group_rebuilds_total",
		"Engines rebuilt, as they had decided what was not committed.",
		"group",
	)
	groupSnapshots = counter("group_snapshots_total", "Snapshots of the group on this node, by outcome.",
		"group", "outcome")
	digests = counter("group_digests_total",
		"How often the state of this node's replica was compared with the others, and most had the same.", "group")
	holding = gauge("group_holding_calls", "Calls on this node that wait for a leader of the group.", "group")
	held    = counter("group_held_calls_total", "Calls on this node that have waited for a leader.", "group")
	refused = counter("group_refused_calls_total",
		"CLUSTERDOWN replies of this node: calls that found no leader of the group in time.", "group")
	uncertain = counter("group_uncertain_replies_total",
		"UNCERTAIN replies: leadership ended before it was known whether the call was carried out.", "group")
	repeats = counter("group_tryagain_replies_total",
		"TRYAGAIN replies: leadership ended, and the client can send the call again.", "group")
)

var (
	proxyClients = gauge("proxy_clients", "Clients of --proxy-port.")
	proxyLinks   = gauge(
		"proxy_links",
		"Connections between nodes for calls that are passed on, by direction: in, out.",
		"direction",
	)
	proxyCalls  = counter("proxy_calls_total", "Calls that were passed on to other nodes, without those sent again.")
	proxyAgain  = counter("proxy_calls_sent_again_total", "Calls that were passed on again, after a refusal.")
	proxyErrors = counter("proxy_errors_total",
		"Calls that were passed on in vain, by reason: unknown (the outcome), failed (no leader in time, or no link).",
		"reason")
	proxyWaits = counter("proxy_link_waits_total", "Calls that waited for a connection to another node, or got none.")
)

func ofProxy(out chan<- prometheus.Metric, p *overview.Proxy) {
	proxyClients.count(out, p.Clients)
	proxyLinks.count(out, p.LinksIn, "in")
	proxyLinks.count(out, p.LinksOut, "out")
	proxyCalls.count(out, p.Calls)
	proxyAgain.count(out, p.Again)
	proxyErrors.count(out, p.Unknown, "unknown")
	proxyErrors.count(out, p.Failed, "failed")
	proxyWaits.count(out, p.LinkWaits)
}

// ofCluster sends metrics of the groups. Labels are the numbers of groups and the names of nodes.
func (m metrics) ofCluster(out chan<- prometheus.Metric, c *overview.Cluster) {
	if c == nil {
		return
	}
	clusterNodes.count(out, int64(len(c.Nodes)))
	groupCount.count(out, int64(len(c.Groups)))
	clusterMoves.count(out, int64(c.Moves))
	clusterDrained.flag(out, c.Drained)
	clusterTimeout.send(out, c.Timeout.Seconds())
	neededTimeout.send(out, c.NeededTimeout.Seconds())
	ofProxy(out, &c.Proxy)
	for i := range c.Nodes {
		nodeUp.flag(out, c.Nodes[i].Up, c.Nodes[i].Name)
		nodeLeads.count(out, int64(c.Nodes[i].Leads), c.Nodes[i].Name)
	}
	for i := range c.Groups {
		g := &c.Groups[i]
		label := strconv.Itoa(g.Number)
		groupLeader.flag(out, g.Leader != "", label)
		for _, role := range overview.Roles {
			groupRole.flag(out, g.Role == role, label, role)
		}
		holding.count(out, g.Holding, label)
		held.count(out, g.Held, label)
		refused.count(out, g.Refused, label)
		uncertain.count(out, g.Uncertain, label)
		repeats.count(out, g.Repeat, label)
		if g.Role != overview.None {
			ofReplica(out, g, label)
		}
	}
}

func ofReplica(out chan<- prometheus.Metric, g *overview.Group, label string) {
	groupTerm.count(out, int64(g.Term), label)
	groupEnd.count(out, int64(g.LogEnd), label)
	groupCommitted.count(out, int64(g.Committed), label)
	groupApplied.count(out, int64(g.Applied), label)
	groupEntries.count(out, int64(g.LagEntries), label)
	groupLag.send(out, g.Lag.Seconds(), label)
	electionsCalled.count(out, g.ElectionsCalled, label)
	electionsWon.count(out, g.ElectionsWon, label)
	leaderChanges.count(out, g.LeaderChanges, label)
	handOvers.count(out, g.HandOvers, label)
	rebuilds.count(out, g.Rebuilds, label)
	digests.count(out, g.Digests, label)
	groupSnapshots.count(out, g.Snapshots, label, "success")
	groupSnapshots.count(out, g.FailedSnapshots, label, "failure")
}

// clusterView is the cluster as the page shows it.
type clusterView struct {
	Name          string      `json:"name"` // of this node
	Nodes         []nodeView  `json:"nodes"`
	Groups        []groupView `json:"groups"`
	Omitted       int         `json:"omitted"` // groups that are not in the list
	Led           int         `json:"led"`
	Total         int         `json:"total"`
	WithoutLeader int         `json:"withoutLeader"`
	Elections     int64       `json:"elections"` // called by this node
	HandOvers     int64       `json:"handOvers"`
	Rebuilds      int64       `json:"rebuilds"`
	Held          int64       `json:"held"`
	Uncertain     int64       `json:"uncertain"`
}

type nodeView struct {
	Name     string `json:"name"`
	Address  string `json:"address"`
	Version  string `json:"version"`
	Me       bool   `json:"me"`
	Up       bool   `json:"up"`
	Leaving  bool   `json:"leaving"`
	Heard    int64  `json:"heard"` // ms ago; -1: not since the start
	Leads    int    `json:"leads"`
	Replicas int    `json:"replicas"`
}

type groupView struct {
	Number     int      `json:"number"`
	First      int      `json:"first"`
	Last       int      `json:"last"`
	Leader     string   `json:"leader"`
	Replicas   []string `json:"replicas"`
	Role       string   `json:"role"`
	Term       uint64   `json:"term"`
	Committed  uint64   `json:"committed"`
	LagEntries uint64   `json:"lagEntries"`
	Lag        int64    `json:"lag"` // ms
	Uncertain  int64    `json:"uncertain"`
}

// maxGroupViews is how many groups an event has: those with trouble first.
const maxGroupViews = 64

func viewCluster(c *overview.Cluster) *clusterView {
	if c == nil {
		return nil
	}
	t := c.Totals()
	v := &clusterView{
		Name: c.Name, Nodes: []nodeView{}, Groups: []groupView{}, Led: t.Led, Total: len(c.Groups),
		WithoutLeader: t.WithoutLeader, Elections: t.ElectionsCalled, HandOvers: t.HandOvers, Rebuilds: t.Rebuilds,
		Held: t.Held, Uncertain: t.Uncertain,
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		v.Nodes = append(v.Nodes, nodeView{
			Name: n.Name, Address: n.Address(false), Version: n.Version, Me: n.Name == c.Name, Up: n.Up,
			Leaving: n.Leaving,
			Heard:   n.HeardAgo(), Leads: n.Leads, Replicas: n.Replicas,
		})
	}
	for i := range c.Groups {
		g := &c.Groups[i]
		v.Groups = append(v.Groups, groupView{
			Number: g.Number, First: g.First, Last: g.Last, Leader: g.Leader, Replicas: g.Replicas, Role: g.Role,
			Term: g.Term, Committed: g.Committed, LagEntries: g.LagEntries, Lag: g.Lag.Milliseconds(),
			Uncertain: g.Uncertain,
		})
	}
	if v.Omitted = max(0, len(v.Groups)-maxGroupViews); v.Omitted > 0 {
		slices.SortStableFunc(v.Groups, func(a, b groupView) int { return cmp.Compare(b.trouble(), a.trouble()) })
		v.Groups = v.Groups[:maxGroupViews]
		slices.SortFunc(v.Groups, func(a, b groupView) int { return cmp.Compare(a.Number, b.Number) })
	}
	return v
}

// trouble orders groups by how much an operator has to know about them.
func (g *groupView) trouble() int {
	switch {
	case g.Leader == "" || g.Role == overview.Broken:
		return 3
	case g.Lag > 1000:
		return 2
	case g.Role == overview.Leader:
		return 1
	}
	return 0
}
