package limit

import "math"

const (
	// Never is the RetryAfter of a call that is never admitted: its cost is above the limit.
	Never = -1

	// MaxCount is the largest limit, capacity, refill or cost: 2^53 - 1, the largest integer that
	// every client can represent exactly, even if its only number type is a double.
	MaxCount = 1<<53 - 1
)

// Decision is the answer to one call. All durations are in milliseconds from the call's now,
// rounded up, and saturate at math.MaxInt64.
type Decision struct {
	// Limit is the limit that the answer is about.
	Limit int64

	// Remaining is how many hits could still be admitted now, after this call: 0 to Limit.
	Remaining int64

	// RetryAfter is 0 when Allowed, Never when the cost is above the limit, and otherwise the
	// shortest wait after which the same call is admitted if nothing else happens.
	RetryAfter int64

	// ResetAfter is how long until the limiter is as if it had never been used; 0 if it is now.
	ResetAfter int64

	// Delay is how long an admitted call has to wait before it proceeds, if a leaky bucket paces
	// it.
	Delay int64

	// Index is the index of the rule that the answer is about if there are several (DecideAll); 0
	// otherwise.
	Index int

	Allowed bool

	// Free reports that a call is Allowed and uses nothing new: the lease that it renews, or the
	// hits of its id, exist already.
	Free bool

	// ShadowDenied reports that a call is Allowed only because the policy that denied it is in
	// SHADOW mode.
	ShadowDenied bool
}

// forever is the largest time: arithmetic saturates at it.
const forever = math.MaxInt64

// later returns t + d, for d >= 0.
func later(t, d int64) int64 {
	if t > forever-d {
		return forever
	}
	return t + d
}

// until returns how long it is from now until t: 0 if t is not after now.
func until(t, now int64) int64 {
	switch {
	case t <= now:
		return 0
	case t == forever || t-now < 0: // the difference of two int64 may need 65 bits
		return forever
	}
	return t - now
}

// hits returns the number of hits that must fit for a call of cost to be admitted: a peek, of cost
// 0, is decided as a call of cost 1.
func hits(cost int64) int64 { return max(cost, 1) }
