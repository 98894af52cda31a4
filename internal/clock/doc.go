// Package clock is the server's time: Unix milliseconds that advance with the monotonic clock and
// stay close to the system clock, also after somebody sets it.
//
// # Differences
//
// Server time advances with the monotonic clock; it never goes backward or stops. Check compares it
// with the system clock once a second. A difference is handled by its size:
//
//	up to a minute                slewed: server time runs faster or slower by 500 ppm until
//	                              they agree
//	more, ahead of server time    ignored until it has lasted for a minute; then server time jumps
//	                              forward
//	more, behind server time      ignored until it has lasted for a minute; then slewed
//
// 500 ppm is the fastest rate at which NTP slews a clock: a second takes 33 minutes, a minute 33
// hours, an hour 83 days. It limits the error of every duration: a client that sleeps for a
// retry_after is at most one part in two thousand too early.
//
// Server time cannot jump backward: times in keys would be in the future, a bucket would not refill
// until then, and names of hits would be used twice. So if the system clock is far behind, a
// running server only slews. Durations are correct meanwhile; absolute times, such as EXPIREAT and
// calendar windows, are off by the difference, which INFO and the log report. "rlserver repair
// --clock" moves a data directory back to the present.
//
// The monotonic clock of Linux stops while the machine is suspended. Afterwards the system clock is
// ahead by the duration of the suspension, which is a step like any other.
//
// # Restarts
//
// Continue takes the latest time in the data. Server time starts strictly after it: at the system
// clock's time if that is later, otherwise a millisecond after the data. If the system clock is
// more than a week later, either it is wrong or the server was down for that long: the difference
// is a step, which has to last for a minute.
//
// # Reading the clock
//
// Now reads the monotonic clock and an immutable line: server time as a function of elapsed time,
// which Check replaces. It takes no lock and allocates nothing. Elapsed measures durations that
// must not follow a step, such as timeouts.
package clock
