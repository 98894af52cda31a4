// Package stats holds the server's counters. INFO, LATENCY, the metrics for Prometheus and the web
// page read the same ones, so their figures agree.
//
//	Counters     the counters of a server: one Command each, Errors, durations of disk writes
//	Command      calls, time, failures and latencies of one command, and its Decisions
//	Decisions    how many calls limiters admitted and denied, by command and by policy
//	Histogram    durations in fixed buckets
//	Errors       error replies by code
//	GroupCalls   held calls and replies of unknown outcome, by group of slots
//	Meter        adds the calls of one connection up, so that a batch costs a few additions
//	Rate         a counter's increase per second
//
// # Cost
//
// A connection's Meter adds calls in its own memory and passes them to the shared counters when the
// command or the bucket changes, and when the batch ends. The shared counters of a command have
// several stripes, which connections use by their number, so they rarely contend for a cache line.
// Counters of commands that were never called take no memory.
//
// # Readers
//
// No reader or writer takes a lock, except for the first error of a kind. A snapshot sums up the
// stripes: it is not a moment's picture, but each counter in it is exact.
//
// # Buckets
//
// There are four buckets between 2^k and 2^(k+1) µs, so a percentile is at most 25 % too high.
// Powers of two in µs are bounds of buckets: Prometheus and LATENCY HISTOGRAM get exact counts.
package stats
