package main

import (
	"rlserver/resp/pubsub"
	"rlserver/web"
)

// addScripts adds the scripts and the overrides of all partitions.
func (s webSource) addScripts(state *web.State) {
	running := s.p.server.Scripts
	state.Scripts = web.Scripts{
		Running: running.Memory(), Ended: running.Refused(), MaxRunning: s.p.settings.ScriptsMemory.Load(),
	}
	for _, e := range s.p.engine.Memory().Engines() {
		n, bytes, evicted := e.Scripts.Size()
		state.Scripts.Cached += int64(n)
		state.Scripts.Bytes += bytes
		state.Scripts.Evicted += evicted
	}
	overrides := s.p.engine.Memory().Overrides()
	state.Overrides = web.Overrides{Count: overrides.N, Bytes: overrides.Bytes, Max: s.p.settings.MaxOverrides.Load()}
}

// addMessages adds what the server tells its clients of unasked.
func (s webSource) addMessages(state *web.State, unnotified int64) {
	hub, tracked := s.p.server.Channels, s.p.server.Tracking.Sizes()
	state.Messages = web.Messages{
		Channels: int64(hub.Count(pubsub.Channels)), Patterns: int64(hub.Count(pubsub.Patterns)),
		Shards: int64(hub.Count(pubsub.Shards)), Subscriptions: hub.Total(),
		Unnotified:      unnotified,
		TrackingClients: int64(tracked.Clients), TrackedKeys: int64(tracked.Keys), TrackedItems: int64(tracked.Items),
		TrackedBytes: int64(tracked.Bytes), TrackingPrefixes: int64(tracked.Prefixes), Forgotten: tracked.Forgotten,
	}
	if hub.Relay != nil {
		state.Messages.NodeQueue, state.Messages.NodeDropped = hub.Relay.Queued(), hub.Relay.Dropped.Load()
	}
}
