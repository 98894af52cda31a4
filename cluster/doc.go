// Package cluster makes this process a node of a cluster. Several nodes are one rate limiter: fewer
// than half of them may fail at any moment, and nothing is admitted twice.
//
// # What a cluster is
//
// The 16,384 slots of Redis Cluster (package slot) are shared evenly by a number of groups, which
// is fixed when the cluster is made. A group has replicas on up to three nodes, and one of them
// leads: it serves the calls on the group's keys (package group). All connections between nodes use
// one port (package mux).
//
//	Node -> Map                which nodes there are, and which have a replica of each group
//	     -> group.Group        one for each replica on this node
//	     -> mux.Port           the connections of all groups, and of control calls
//
// # How it begins
//
// See found.go. The map is stored in cluster.json in the node's directory, together with the node's
// name. A node that is named in the map but has no data is refused: it might vote for what it has
// forgotten.
//
// # While it runs
//
// Nodes exchange reports on the control channel: which groups they lead, and, from the leader of
// group 0, the policies, which each node sets in the groups that it leads. A leader hands a group
// over to the node that the map names first, when that has been there for a while (balance.go).
//
// # Files
//
//	map.go        Map, Member, cluster.json
//	found.go      greetings, founding, reports
//	node.go       Node: open, close, hand over; who leads what
//	control.go    calls between nodes
//	policies.go   the policies in all groups
//	balance.go    who should lead
//
// # Left out so far
//
// The map is fixed when the cluster is made: nodes cannot be added or removed.
package cluster
