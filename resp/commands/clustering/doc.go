// Package clustering has the commands about the cluster of which a server is a node: CLUSTER,
// READONLY, READWRITE, ASKING. They read its state through command.Env.Cluster.
//
// It also adapts other commands to a cluster: it merges the replies of several groups to commands
// on the whole keyspace (keyspace.go), refuses commands that are not available (refusals.go), and
// finds the slot of a call (calls.go).
package clustering
