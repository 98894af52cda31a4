// Package tracking tells clients that keep copies of values when a key changes: CLIENT TRACKING.
//
//	Client.Remember  a client has read keys: the table notes it, under the locks of the keys
//	Table.Tell       calls have changed keys: each client that has read one, or that has a prefix
//	                 of its name, gets a message. The table forgets who has read the key
//
// The messages are sent as those of channels: when the change is kept, after the replies of the
// client that has made it, and after those of a batch of the client that gets them. So a client
// that has got a value that is out of date gets the message after it.
//
// # Bounds
//
// The table has at most tracking-table-max-keys keys; on average of maxName bytes, and maxShare
// clients have read each. If a further key is read, clients are told that another one has changed.
// Prefixes have limits of their own. A client that does not read its messages is closed by
// client-output-buffer-limit.
//
// # In a cluster
//
// A client that follows MOVED reads a key from the node that leads its slot, and is told by that
// node. When a node no longer leads slots, all that its clients have read counts as changed.
//
// Calls of a client of the proxy port may run on any node. While there is such a client, its node
// has a link to each other node, which tells it of all keys that it changes, and when it no longer
// leads slots; see Links.
//
//	client -> node a: GET k -> node b: GET k     node a notes k before it passes the call on
//	other  -> node b: SET k                      node b tells node a, which tells the client
//
// If a link fails, all that these clients have read counts as changed. NOLOOP makes no difference
// for calls that another node has run.
//
// # Locks
//
// Table.mu comes after the locks of shards, and before those of Links, of clients as subscribers,
// and of the list of clients that Find uses.
package tracking
