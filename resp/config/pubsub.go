package config

import "sync/atomic"

// PubSubLimits bound what clients can subscribe to.
type PubSubLimits struct {
	PerClient atomic.Int64 // subscriptions of one client
	All       atomic.Int64 // subscriptions of all clients
	Patterns  atomic.Int64 // different patterns: each message is compared with all of them
	Changes   atomic.Int64 // to keys of a group, by no call, that wait for the log
	NodeQueue atomic.Int64 // bytes of messages that wait for one other node of a cluster
}
