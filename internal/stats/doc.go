// Package stats has the server's counters. INFO, LATENCY, the metrics for Prometheus and the web
// page read the same counters, so their values agree.
//
//	Counters     the counters of a server: those of each command, Errors, durations of disk writes
//	command      calls, time, failures and latencies of one command, and its Decisions
//	Decisions    how many calls limiters admitted and denied, by command and by policy
//	Histogram    durations in fixed buckets
//	Errors       error replies by code
//	GroupCalls   held calls and replies of unknown outcome, by group of slots
//	Meter        adds up the calls of one connection, so that a batch costs a few additions
//	Rate         a counter's increase per second
//
// # Cost
//
// A connection's Meter adds up calls in its own memory. It adds the sums to the shared counters
// when the command or the bucket changes, and when the batch ends. The shared counters of a command
// have several stripes, and a connection uses one of them by its number, so connections rarely
// contend for a cache line. Commands that were never called have no counters.
//
// # Readers
//
// Counting a call takes no lock. Counting an error takes a read lock, and a write lock for the
// first error with a code. A snapshot sums up the stripes while they change: each counter in it is
// exact, but they are not all of the same moment.
//
// # Buckets
//
// There are four buckets between 2^k and 2^(k+1) µs, so a percentile is at most 25 % too high.
// Powers of two in µs are bounds of buckets, so the counts of Prometheus and LATENCY HISTOGRAM are
// exact.
package stats
