// Package forward forwards calls of clients to the nodes of a cluster that lead their slots, so
// that a client need not know which node that is.
//
//	client -> session -> Client.Add ... Send -> link ====> session of the other node
//	client <- session <- Client.Collect      <- link <==== its replies, in order
//
// # Links
//
// A [link] is a connection to another node, on its port for nodes, with RESP. The node serves it as
// the session of a client that has logged in as the user in [Control]. Links belong to the [Pool]
// of a node. A client borrows one for a batch of calls, and returns it when it has read all
// replies: so there are as many links as concurrent batches, however many clients there are. A call
// that waits for a key, and watched keys, keep their links.
//
// # Outcomes
//
// The other node replies with [Refusal] to a call that it has not carried out, because it does not
// lead the slot. It then refuses all following calls on the link until Control is sent
// again, which confirms that the refusals were read. So the calls of a client on a slot never
// overtake each other. Refused calls are sent to the next leader, until the hold time of the batch
// is over.
//
// A call that was written to a link that then fails has the outcome [Unknown]. It is not sent
// again. If a node hangs, it does not answer other nodes either, so its links fail.
//
// A call with the outcome Unknown does not begin to run afterwards, though it may lie in a queue of
// the other node: each link belongs to an epoch, and a node runs calls of an epoch only while it
// knows that they are wanted (package cluster/wanted). The outcome is known when the epoch is over.
// Links of later epochs are new ones. Calls that wait on other links of the epoch are answered, or
// refused and sent again, as long as the other node is heard.
//
// # Limits
//
// A batch has at most [maxCalls] calls and [maxBytes] bytes, which fit in the buffers of the
// sockets: so neither node waits for the other to read. Larger calls are sent alone. Replies are
// read into the reply of the client, with its limits. Options.MostLinks limits the links to each
// node.
//
// # Locks
//
// The lock of a peer may be taken while Pool.mu is held; no other lock is taken while one of them
// is held. A client takes its links in the order of the nodes' names, and waits for one only if it
// has none of a later node, so there are no deadlocks.
//
// # Left out
//
// A forwarded call is not forwarded again: a node that does not lead the slot refuses it.
package forward
