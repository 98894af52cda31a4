// Package pubsub has the channels that clients publish to and subscribe to, and delivers messages.
//
// # Model
//
//	Hub       the channels, shard channels and patterns of a server, each with its subscriptions
//	Client    a connection as a subscriber: its subscriptions, and where its messages go
//	Outbox    the messages of one batch of calls, until they are delivered
//
// The way of PUBLISH news hi:
//
//	Hub.Publish   finds the subscriptions of the channel, and of the patterns that match it;
//	              encodes the message; adds both to the outbox of the publisher
//	Hub.order     before the replies of the publisher's batch are sent: gives the messages their
//	              place among those of other publishers
//	Hub.deliver   when they are sent: passes the bytes to each subscriber, who never makes the
//	              publisher wait; see outbox.go
//
// Messages that follow each other and have the same subscribers are one run of bytes: a pipeline of
// messages costs each subscriber one write. The bytes are made once for each version of the
// protocol, and all subscribers share them. The two versions differ in the first byte of each
// message.
//
// # Why messages wait for the end of the batch
//
// A message may tell of a change that a call before it in the same pipeline has made. So it must
// not be sent before that change is kept: the batch waits for the log or the cluster first.
//
// # Invariants
//
//   - A client gets no message of a channel before the reply that confirms its subscription, nor
//     after the one that confirms its end. Subscription.ended is set under the lock under which
//     messages are passed to the client.
//   - All subscribers get the messages to a channel in one order. What a client publishes when it
//     has the reply to a PUBLISH, its own or another client's, comes later.
//   - Hub.Publish takes no lock of a client, and Hub.deliver none of the hub: a client that is
//     slow to take a message costs nobody else.
//   - The numbers of subscriptions per client and over all, and of patterns, have limits. A call
//     that would exceed one changes nothing.
//
// # Locks
//
// Hub.mu comes before Client.mu, which comes before those of the connection.
package pubsub
