// Package clustering has the commands about the cluster of which a server is a node: CLUSTER,
// READONLY, READWRITE, ASKING. They read its state through command.Env.Cluster.
//
// It also finds the slot of a call. What a cluster refuses, and how the values of
// several groups are merged, is in the declaration of each command.
package clustering
