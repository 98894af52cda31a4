// Package diagnostics keeps what SLOWLOG, LATENCY and MONITOR report.
//
//	Slowlog      the latest calls that took long
//	Latency      times at which calls or the disk were slow, by event
//	AppendCall   a call as MONITOR shows it
//	Redacted     a call without its passwords
//	SlowAfter    the time from which calls are slow; SpikeAfter: from which they are events
//
// # Bounds
//
// The slow log has at most slowlog-max-len entries and 16 MB. An entry has at most 32 arguments of
// 128 bytes each, as in Redis. Latency has 160 samples for each event, at most one per second. The
// number of events is fixed.
//
// # Passwords
//
// Code that shows a call to others passes it through Redacted first. A new command or setting that
// takes a password is declared there, or has config.Parameter.Secret.
package diagnostics
