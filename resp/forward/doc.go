// Package forward passes calls of clients on to the nodes of a cluster that lead their slots, so
// that a client need not know which node that is.
//
//	client -> session -> Client.Add ... Send -> link ====> session of the other node
//	client <- session <- Client.Collect      <- link <==== its replies, in order
//
// # Links
//
// A [link] is a connection to another node, on its port for nodes. It carries RESP. The node serves
// it as the session of a client that has logged in as the user that the link names, see [Control].
// Links belong to the [Pool] of a node. A client borrows one for a batch of calls, and returns it
// when all replies are read: so there are as many links as calls on their way, however many clients
// there are. A call that waits for a key and the keys that are watched keep their links.
//
// # What may have happened
//
// The other node replies with MOVED or CLUSTERDOWN to a call that it has not carried out, because
// it does not lead the slot, and then refuses all that follows on the link until it is told that
// the refusals were read (Control, again). So the calls of a client on a slot never overtake each
// other. Refused calls are sent to the next leader, until the calls of the batch were held for as
// long as calls may be.
//
// A call that was written to a link that then fails has the outcome [Unknown]. It is not sent
// again. A node that hangs does not answer other nodes either: then its links count as failed.
//
// # Bounds
//
// A batch has at most [maxCalls] calls and [maxBytes] bytes, which the buffers of the sockets take:
// so neither node waits for the other to read. Larger calls are sent alone. Replies are read into
// the reply of the client, with its limits. Options.MostLinks bounds the links to each node.
//
// # Locks
//
// Pool.mu and the lock of a peer are leaves. A client takes its links in the order of the nodes'
// names, and waits for one only if it keeps none of a later node, so no two wait for each other.
//
// # Left out
//
// There is no way from one other node to a third: a node that does not lead the slot says so.
package forward
