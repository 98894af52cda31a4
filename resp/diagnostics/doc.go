// Package diagnostics keeps what SLOWLOG, LATENCY and MONITOR report.
//
//	Slowlog      the calls that took longest lately
//	Latency      the times at which calls or the disk took long, by event
//	AppendCall   a call as MONITOR shows it
//	Redacted     a call without its passwords
//
// # Bounds
//
// The slow log has at most slowlog-max-len entries and 16 MB. An entry has at most 32 arguments of
// 128 bytes each, as in Redis. Latency has 160 samples for each event, one a second at most, and
// the events are those that the server names.
//
// # Passwords
//
// Code that shows a call to others passes it through Redacted first. A new command or setting that
// takes a password is declared there, or has config.Parameter.Secret.
package diagnostics
