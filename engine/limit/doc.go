// Package limit is the arithmetic of rate limiting: given the state of a limiter, the time and the
// cost of a call, is the call admitted, and if not, when would it be?
//
// # One step
//
// Every algorithm is a pure step. It has no clock, key, lock or disk; rule and time are parameters
// of the call, so the same calls give the same answers. (With rules that name a time zone, this
// requires the same version of the time zone database: zone.go prefers the machine's to the
// built-in one.)
//
//	rule, state, now, cost  ->  state', Decision
//
//	token.go     Bucket.Take          a bucket that refills evenly: three integers
//	fixed.go     Fixed.Take           a count per window: three integers
//	counter.go   Counter.Take         a sliding window estimated from two counts: four integers
//	calendar.go  Windows.Bounds       windows of a duration, or of a calendar unit in a zone
//	slide.go     Window, Log          an exact sliding window over a log of hits
//	multi.go     DecideAll            one or several of those over one log, all or nothing
//	lease.go     Lease.Decide         how many at once, over a log of expiry times
//	leaky.go     Bucket.Pace          a token bucket that paces: how long until a call may proceed
//	refund.go    Tokens, Count        returning hits to a limiter
//	decision.go  Decision             the answer of every limiter
//	all.go       Decision.And         the answers of several limiters combined
//	duration.go  ParseDuration        durations in rules
//	zone.go      ParseZone            time zones in rules
//
// Sliding windows and leases have no state of their own. Their log is a sorted set that clients may
// also read and write, so they only read it, through the small interface Log, and the caller adds
// the admitted hits.
//
// # The laws
//
//  1. A denied call changes nothing, nor does a peek (a call of cost 0, decided like one of cost
//     1): the returned state is the given one, bit for bit.
//  2. Never over: no more hits are admitted than the algorithm's definition allows.
//  3. Never under: a call is denied only if admitting it would break law 2.
//  4. RetryAfter is exact: the same call is admitted at that time and denied 1 ms earlier.
//  5. The hits of a call are admitted together or not at all, and so are its rules.
//
// laws_test.go checks each algorithm for each law, against oracles that keep every hit and count by
// definition. All algorithms except the fixed window and the sliding window counter enforce their
// limit over any interval; around the boundary of two fixed windows twice the limit can be
// admitted.
//
// # Time and numbers
//
// Times are Unix milliseconds, durations milliseconds, all integers. A product of a time and a
// count takes up to 94 bits and is computed in 128 (math/bits). State that the next call of the
// same rule uses is never rounded, so nothing drifts. Only answers are rounded: waits up, so that a
// caller that sleeps that long is admitted; counts down. A wait too long for an int64 is
// math.MaxInt64.
//
// Floating point occurs in one place: the log's times are doubles because a sorted set's scores
// are. They are only compared, until they are rounded up to a whole millisecond.
//
//	hit at 104.5, window 10     |   105 . . . . . . . . 114   |  115
//	                            |   counts: [105, 115)        |  lapsed
//
// Time is assumed not to run backward. If a state comes from a clock that was ahead (such as a key
// from another machine), the call sees the limiter as it was then, and waits that much longer.
//
// # Rules that change
//
// The rule is an argument, so it may differ from call to call. A change of the rule frees nothing
// that was used: see Tokens for a bucket, Counts for a counter. A fixed window whose hits the state
// cannot tell is an error until the window in the state ends, see Fixed.Take. A log holds the hits
// themselves, and every rule is exact over it from its first call on, as far back as hits are kept:
// a shorter window drops hits that a longer one would need, so a client that uses both must pass
// both in one call, as RL.MULTI does.
//
// # Left out on purpose
//
// Validation: rules are within the bounds that their types document, and costs are from 0 to
// MaxCount; the commands check both and have their own error texts. Expiry of keys: a limiter is as
// if never used after ResetAfter, so that is the key's TTL. Queues of waiting calls: the arithmetic
// only says for how long to wait.
package limit
