// Package overview is what a node knows about its cluster: nodes, groups, who leads what, and what
// is counted. INFO, CLUSTER, the metrics and the web page show the same Cluster.
//
// Figures of a group are those of the node's own replica. A node without a replica of a group knows
// its leader alone.
package overview
