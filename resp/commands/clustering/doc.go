// Package clustering has the commands about the cluster that a server is a node of: CLUSTER,
// READONLY, READWRITE, ASKING. They see the cluster by command.Env.Cluster.
//
// It also has what other commands do in a cluster: how those on the whole keyspace join the replies
// of several groups (keyspace.go), and which are refused (refusals.go).
package clustering
