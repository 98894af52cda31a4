package config

import "sync/atomic"

// TrackingLimits bound what clients may track.
type TrackingLimits struct {
	Keys              atomic.Int64 // that all clients together have read; 0: any number
	PrefixesPerClient atomic.Int64
	Prefixes          atomic.Int64 // different ones of all clients
}
