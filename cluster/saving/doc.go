// Package saving makes SAVE, BGSAVE and BGREWRITEAOF work on a node of a cluster: it takes
// snapshots of all groups that the node has a replica of, one after the other. Each group also
// takes snapshots by itself, as its log grows. A Store is the storage.Store of a node.
package saving
