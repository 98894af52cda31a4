// Package clock is the server's time: Unix milliseconds that go on with the monotonic clock and are
// kept close to the system clock, whatever is done to that.
//
// # How it runs
//
// Server time advances with the monotonic clock and never runs backward or stands still. Check
// compares it with the system clock, once a second:
//
//	difference up to a minute    slewed away: server time runs faster or slower by 500 ppm until they agree
//	more, ahead of server time   ignored until the system clock has stood by it for a minute; then server
//	                             time jumps forward
//	more, behind server time     ignored until the system clock has stood by it for a minute; then slewed
//
// 500 ppm is as fast as NTP slews a clock: a second takes 33 minutes, a minute 33 hours, an hour 83
// days. It bounds the error of every duration, so a client that sleeps as long as it was told
// arrives no more than one part in two thousand early.
//
// Server time cannot jump backward: keys hold times that would then lie in the future, a bucket
// would stop refilling until they come, and the names of hits would be given twice. So where the
// system clock is far behind, slewing is all a running server does. Durations are right all the
// while; absolute times, such as EXPIREAT and calendar windows, are off by the difference, which
// INFO and the log report. "rlserver repair --clock" takes a data directory back to the present.
//
// The monotonic clock of Linux stands while the machine is suspended: after that the system clock has jumped
// forward by as long.
//
// # Restarts
//
// Continue takes the latest time in the data. Server time starts strictly after it: at the system
// clock's time if that is later, otherwise a millisecond after the data. A system clock that is
// more than a week later may be wrong and may also have been down that long: it counts as a step,
// which it has to stand by.
//
// # Reading it
//
// Now reads the monotonic clock and an immutable line, time as a function of elapsed time, which
// Check replaces. There is no lock and no allocation. Durations that must not follow a step, such
// as timeouts, are measured by Elapsed.
package clock
