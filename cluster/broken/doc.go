// Package broken has builds that break the promise of a cluster on purpose, to see that the tests
// of that promise notice it. Each is a constant, false in an ordinary build, where it costs
// nothing, and true under the build tag of its name:
//
//	broken_denials     a leader denies without having confirmed that it leads
//	broken_early       a leader replies before its followers have the change
//	broken_norebuild   a deposed leader keeps what was not committed
//	broken_wallclock   a new leader takes the time from its own system clock
//
// make nemesis-broken runs them all.
package broken
