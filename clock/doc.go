// Package clock is the server's time: Unix milliseconds that advance with the monotonic clock and
// are kept close to the system clock, even if that is set.
//
// # How it runs
//
// Server time advances with the monotonic clock and never runs backward or stands still. Check
// compares it with the system clock, once a second:
//
//	up to a minute                slewed: server time runs faster or slower by 500 ppm until
//	                              they agree
//	more, ahead of server time    ignored until the system clock has kept it for a minute; then
//	                              server time jumps forward
//	more, behind server time      ignored until the system clock has kept it for a minute; then
//	                              slewed
//
// 500 ppm is as fast as NTP slews a clock: a second takes 33 minutes, a minute 33 hours, an hour 83
// days. It bounds the error of every duration, so a client that sleeps for a retry_after comes back
// at most one part in two thousand early.
//
// Server time cannot jump backward: times in keys would be in the future, a bucket would not refill
// until then, and names of hits would be used twice. So if the system clock is far behind, a
// running server only slews. Durations are right meanwhile; absolute times, such as EXPIREAT and
// calendar windows, are off by the difference, which INFO and the log report. "rlserver repair
// --clock" moves a data directory back to the present.
//
// The monotonic clock of Linux stops while the machine is suspended. Afterwards the system clock
// has jumped forward by that time.
//
// # Restarts
//
// Continue takes the latest time in the data. Server time starts strictly after it: at the system
// clock's time if that is later, otherwise a millisecond after the data. If the system clock is
// more than a week later, either it is wrong or the server was down for that long: it counts as a
// step, which it has to keep for a minute.
//
// # Reading it
//
// Now reads the monotonic clock and an immutable line, which is time as a function of elapsed time
// and is replaced by Check. It takes no lock and allocates nothing. Durations that must not follow
// a step, such as timeouts, are measured by Elapsed.
package clock
