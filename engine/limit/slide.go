package limit

import "math"

// Log is the hits of a sliding window, in order of time: Unix ms, whole when a limiter recorded them,
// fractional or in the future when someone added them by hand. Equal times are allowed.
//
// Decide calls it through this interface; a value of pointer shape (a pointer, or a struct of just one)
// becomes a Log without an allocation.
type Log interface {
	// Len returns the number of hits.
	Len() int
	// At returns the time of the i-th hit, 0 <= i < Len.
	At(i int) float64
	// After returns the rank of the first hit later than t: the number of hits at t or before.
	After(t float64) int
}

// Rule is the rule of an exact sliding window: at most Limit hits in any (t-Window, t], Window in ms.
// Both are at least 1; Limit at most MaxCount, Window at most MaxDuration.
//
// Times are asked about in whole milliseconds, so a hit at a fraction of one counts from the next
// whole one on, and for Window ms like any other.
type Rule struct{ Limit, Window int64 }

// Decide answers a call of cost at Unix millisecond now. It changes nothing: when the answer is
// Allowed, the caller is to add cost hits at now. A cost of 0 is a peek.
//
// A hit in the future counts once now reaches it: RetryAfter steps over it, ResetAfter waits for it.
// Without any, Decide costs two calls of After and at most two of At. With some, a denied call may
// cost two of After for every one of them.
func (r Rule) Decide(log Log, now, cost int64) Decision {
	entered := log.After(float64(now))
	d := r.decide(log, entered, now, cost)
	d.ResetAfter = resetAfter(log, r.Window, entered, now, d.Allowed && cost > 0)
	return d
}

// Repeated answers a call at Unix millisecond now whose id is in the window already: it was admitted
// and paid for then. The caller is to add nothing.
func (r Rule) Repeated(log Log, now int64) Decision {
	entered := log.After(float64(now))
	used := int64(entered - log.After(float64(now-r.Window)))
	return Decision{
		Allowed:    true,
		Limit:      r.Limit,
		Remaining:  max(r.Limit-used, 0),
		ResetAfter: resetAfter(log, r.Window, entered, now, false),
	}
}

// decide is Decide but for ResetAfter. entered is the rank of the first hit that is later than now.
func (r Rule) decide(log Log, entered int, now, cost int64) Decision {
	used := int64(entered - log.After(float64(now-r.Window)))
	d := Decision{Limit: r.Limit, Allowed: hits(cost) <= r.Limit-used}
	switch {
	case hits(cost) > r.Limit:
		d.RetryAfter = Never
	case !d.Allowed:
		d.RetryAfter = until(r.admits(log, now, cost), now)
	default:
		used += cost
	}
	d.Remaining = max(r.Limit-used, 0)
	return d
}

// admits returns the earliest t, from the given one on, at which a call of cost <= Limit is admitted.
//
// Room comes only from hits that lapse. When over hits too many are in the window, it takes at least
// until the over-th oldest of them lapses; by then others may have entered, so look again from there.
func (r Rule) admits(log Log, t, cost int64) int64 {
	for t <= MaxCount { // doubles count milliseconds one by one up to here, in the year 287396
		first := log.After(float64(t - r.Window))
		over := int64(log.After(float64(t))-first) - (r.Limit - hits(cost))
		if over <= 0 {
			return t
		}
		t = r.lapse(log.At(first + int(over) - 1))
	}
	return forever
}

// lapse returns the first whole millisecond at which a hit at time at counts no longer.
func (r Rule) lapse(at float64) int64 { return later(ceil(at), r.Window) }

// resetAfter returns how long until the last hit has lapsed, where added tells that one is being added
// at now.
func resetAfter(log Log, window int64, entered int, now int64, added bool) int64 {
	n := log.Len()
	if n == 0 || added && entered == n {
		if added {
			return window
		}
		return 0
	}
	reset := until(Rule{Window: window}.lapse(log.At(n-1)), now)
	if added {
		return max(reset, window)
	}
	return reset
}

// ceil returns the least whole number that is not below f, saturated.
func ceil(f float64) int64 {
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(math.Ceil(f))
}
