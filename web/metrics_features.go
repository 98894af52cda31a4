package web

import "github.com/prometheus/client_golang/prometheus"

// Messages are publish and subscribe, the changes of keys that clients hear of, and CLIENT
// TRACKING.
type Messages struct {
	Channels, Patterns, Shards int64 // that have subscribers
	Subscriptions              int64 // of all clients
	NodeQueue                  int64 // bytes that wait for other nodes
	NodeDropped                int64 // messages that another node did not get
	Unnotified                 int64 // changes that no message has told of

	TrackingClients  int64
	TrackedKeys      int64 // that these clients have read
	TrackedItems     int64 // pairs of a key and a client
	TrackedBytes     int64 // of the names of these keys
	TrackingPrefixes int64
	Forgotten        int64 // keys that these clients had to drop, as there was no space
}

// Scripts are the scripts that EVALSHA can run, and those that run.
type Scripts struct {
	Cached, Bytes, Evicted int64
	Running                int64 // bytes that those that run may take
	MaxRunning             int64
	Ended                  int64 // for the memory that they needed
}

// Overrides are what policies say for single ids.
type Overrides struct{ Count, Bytes, Max int64 }

var (
	channels = gauge("pubsub_channels",
		"Channels with subscribers, by kind: channel, pattern or shard.", "kind")
	subscriptions = gauge("pubsub_subscriptions", "Subscriptions of all clients.")
	nodeQueue     = gauge("pubsub_node_queue_bytes", "Messages that wait for other nodes of the cluster, in bytes.")
	nodeDropped   = counter("pubsub_node_dropped_total", "Messages that did not reach another node of the cluster.")
	unnotified    = counter("notifications_dropped_total",
		"Keys that have expired or were evicted, of which no message tells, as the log was too slow.")

	trackingClients  = gauge("tracking_clients", "Clients that CLIENT TRACKING tells of changes.")
	trackedKeys      = gauge("tracking_keys", "Keys that these clients have read.")
	trackedItems     = gauge("tracking_items", "Pairs of such a key and a client.")
	trackedBytes     = gauge("tracking_key_bytes", "Memory of the names of these keys.")
	trackingPrefixes = gauge("tracking_prefixes", "Prefixes of clients that track with BCAST.")
	forgotten        = counter("tracking_forgotten_keys_total",
		"Keys that these clients had to drop, as tracking-table-max-keys was reached.")
)

func (m metrics) ofMessages(out chan<- prometheus.Metric, s *State) {
	p := &s.Messages
	channels.count(out, p.Channels, "channel")
	channels.count(out, p.Patterns, "pattern")
	channels.count(out, p.Shards, "shard")
	subscriptions.count(out, p.Subscriptions)
	nodeQueue.count(out, p.NodeQueue)
	nodeDropped.count(out, p.NodeDropped)
	unnotified.count(out, p.Unnotified)
	trackingClients.count(out, p.TrackingClients)
	trackedKeys.count(out, p.TrackedKeys)
	trackedItems.count(out, p.TrackedItems)
	trackedBytes.count(out, p.TrackedBytes)
	trackingPrefixes.count(out, p.TrackingPrefixes)
	forgotten.count(out, p.Forgotten)
}

var (
	scriptsCached  = gauge("scripts", "Scripts that EVALSHA can run.")
	scriptsBytes   = gauge("scripts_bytes", "Memory of these scripts.")
	scriptsEvicted = counter("scripts_evicted_total",
		"Scripts dropped because too many were loaded: clients have to send them again.")
	scriptsRunning    = gauge("scripts_running_bytes", "Memory that the running scripts may take.")
	scriptsRunningMax = gauge("scripts_running_max_bytes", "lua-memory-total.")
	scriptsEnded      = counter("scripts_ended_for_memory_total",
		"Scripts ended because of the memory that they needed.")

	overrides     = gauge("overrides", "Ids for which policies have other numbers: RL.POLICY SET with FOR.")
	overrideBytes = gauge("overrides_bytes", "Memory of these numbers.")
	overridesMax  = gauge("overrides_max", "max-overrides: how many ids may have such numbers.")
)

func (m metrics) ofScripts(out chan<- prometheus.Metric, s *State) {
	scriptsCached.count(out, s.Scripts.Cached)
	scriptsBytes.count(out, s.Scripts.Bytes)
	scriptsEvicted.count(out, s.Scripts.Evicted)
	scriptsRunning.count(out, s.Scripts.Running)
	scriptsRunningMax.count(out, s.Scripts.MaxRunning)
	scriptsEnded.count(out, s.Scripts.Ended)
	overrides.count(out, s.Overrides.Count)
	overrideBytes.count(out, s.Overrides.Bytes)
	overridesMax.count(out, s.Overrides.Max)
}
