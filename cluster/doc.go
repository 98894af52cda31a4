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
// See found.go. The latest map that a node knows is stored in cluster.json in its directory,
// together with the node's name and instance.
//
// # How it changes
//
// The map is what the cluster should be. It is the hidden note of group 0, whose leader changes it
// (members.go): a node joins or is forgotten, and the replicas are placed anew (map.go). Each
// leader of a group brings the group's members closer to the map, one change at a time (moves.go).
// It compares the two and remembers nothing, so the next leader continues.
//
// A replica has an identity of its own: the node's name and a random number that is stored with it
// (directory.go). A node that has lost its data, or whose log may be truncated, gets new ones: its
// groups take them for new members, and it does not vote for what it has forgotten.
//
// # While it runs
//
// Nodes exchange reports on the control channel (gossip.go): which groups they lead, their
// replicas, and the map for who has an older one. Users and policies are part of the map, so that
// all nodes have the same (shared.go). A leader hands a group over to the node that the
// map names first, when that has stored what it proposes for a while (balance.go).
//
// # Files
//
//	map.go        Map, Member; which nodes should have replicas
//	directory.go  cluster.json, and the replicas in the node's directory
//	found.go      greetings, founding
//	members.go    joining and leaving
//	moves.go      changes of the members of groups
//	node.go       Node: open, close; who leads what
//	drain.go      leadership that is given away by an order
//	gossip.go     reports
//	control.go    calls between nodes
//	shared.go     the users and the policies, which are a part of the map; calls to all leaders
//	balance.go    who should lead; how fast disks and the network are
//	recover.go    a node that goes on alone; copies of the latest snapshots
//	overview.go   what INFO and /metrics show; whether a node can be spared
//	seen.go       refuses nodes that have come back with an older directory
//	wallclock.go  compares the system clocks of the nodes, and finds the time when all start
package cluster
