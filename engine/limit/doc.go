// Package limit is the arithmetic of rate limiting: given what a limiter remembers, the time, and
// what a call costs, is the call admitted, and if not, when would it be?
//
// # One step
//
// Every algorithm is a pure step. It knows no clock, key, lock or disk; the rule comes with the
// call and the time is a parameter, so the same calls give the same answers. (Where a rule names a
// time zone, that takes the same edition of the time zone database: zone.go asks the machine's
// before the one built in.)
//
//	rule, state, now, cost  ->  state', Decision
//
//	token.go     Bucket.Take          a bucket that refills evenly: three integers
//	fixed.go     Fixed.Take           a count per window: three integers
//	calendar.go  Windows.Bounds        which window: a duration, or a calendar unit in a time zone
//	slide.go     Window, Log           an exact sliding window over a log of hits
//	multi.go     DecideAll            one or several of those over one log, all or nothing
//	lease.go     Lease.Decide         how many at once, over a log of when each lapses
//	leaky.go     Bucket.Pace          the token bucket as a pacer: how long until a call may go
//	refund.go    Tokens, Count        what was used, given back
//	decision.go  Decision             what every limiter answers
//	all.go       Decision.And         the answers of several limiters made one
//	duration.go  ParseDuration        how a rule spells time
//	zone.go      ParseZone            and where it is that time
//
// The sliding windows and the leases keep no state of their own. Their log is a sorted set that its
// owner may also read and write by hand, so they only look at it, through the small interface Log,
// and the caller adds the hits that were admitted.
//
// # The laws
//
//  1. A denied call changes nothing, nor does a peek (a call of cost 0, which answers for a hit of
//     1): the state that comes back is the one that went in, bit for bit.
//  2. Never over: no more is admitted than the algorithm's definition allows.
//  3. Never under: a call is denied only if admitting it would break law 2.
//  4. RetryAfter is exact: the same call is denied 1 ms earlier and admitted then.
//  5. The hits of a call are admitted together or not at all, and so are its rules.
//
// laws_test.go holds each algorithm to each law, against oracles that keep every hit forever and
// count by definition. All algorithms but the fixed window keep their promise over any stretch of
// time; around the edge of two fixed windows twice the limit can pass.
//
// # Time and numbers
//
// Times are Unix milliseconds, durations milliseconds, all integers. A product of a time and a
// count takes up to 94 bits and is worked out in 128 (math/bits); nothing is ever rounded that is
// carried on to the next call of the same rule, so nothing drifts. What is rounded is only what is
// answered: waits up, so that a caller that sleeps for one is admitted; counts down. A wait too
// long for an int64 is math.MaxInt64.
//
// Floating point occurs in one place: the log's times are doubles because a sorted set's scores
// are. They are compared, never calculated with, until rounded up to a whole millisecond.
//
//	hit at 104.5, window 10     |   105 . . . . . . . . 114   |  115
//	                            |   counts: [105, 115)        |  lapsed
//
// Time is held not to run backward. Where a state comes from a clock that was ahead (a key brought
// from another machine), the call finds the limiter as it was then, and has to wait for that
// much longer.
//
// # Rules that change
//
// The rule is an argument, so it may be another one at every call. Nothing a caller has used is
// forgiven by that: Tokens says what becomes of a bucket. A fixed window that the state cannot
// speak of is refused while the one that is counted goes on, see Fixed.Take. A log holds the hits
// themselves, and every rule is exact over it from its first call on, as far back as hits were
// kept: a shorter window drops hits that a longer one would need, so calls that take turns with
// both have to name both, as RL.MULTI does.
//
// # Left out on purpose
//
// Checks of the arguments: rules are within the bounds their types name, and costs are from 0 to
// MaxCount, because the commands that carry them say so in words of their own. The lapse of keys: a
// limiter is as if never used after ResetAfter, which makes that the key's TTL. Queues of calls
// that wait: the arithmetic says for how long, and to wait is somebody else's work.
package limit
