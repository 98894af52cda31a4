package limit

import "math"

// Log is the hits of a sliding window, in order of time: Unix ms, integers if a limiter recorded
// them, possibly fractional or in the future if a client added them. Equal times are allowed.
//
// A pointer, or a struct with one pointer as its only field, is converted to a Log without an
// allocation.
type Log interface {
	// Len returns the number of hits.
	Len() int
	// At returns the time of the i-th hit, 0 <= i < Len.
	At(i int) float64
	// After returns the rank of the first hit later than t: the number of hits at t or before.
	After(t float64) int
}

// Window is the rule of an exact sliding window: at most Limit hits in any (t-Length, t], Length in
// ms. Both are at least 1; Limit at most MaxCount, Length at most MaxDuration.
//
// Calls have times in whole milliseconds, so a hit at a fraction of a millisecond counts from the
// next whole one on, for Length ms like any other.
type Window struct{ Limit, Length int64 }

// decide decides a call of cost at now; it does not set ResetAfter. entered is the rank of the
// first hit that is later than now.
func (r Window) decide(log Log, entered int, now, cost int64, budget *int) Decision {
	lapsed := log.After(float64(now - r.Length))
	free := r.Limit - int64(entered-lapsed) // below 0 when the limit has shrunk
	d := Decision{Limit: r.Limit, Allowed: hits(cost) <= free}
	switch {
	case hits(cost) > r.Limit:
		d.RetryAfter = Never
	case d.Allowed:
		free -= cost
	default:
		over := hits(cost) - free
		t := r.lapse(log.At(lapsed + int(over) - 1))
		if entered < log.Len() {
			t = r.admits(log, t, cost, budget)
		}
		d.RetryAfter = until(t, now)
	}
	d.Remaining = max(free, 0)
	return d
}

// repeated decides a call whose id is in the window already; it does not set ResetAfter.
func (r Window) repeated(log Log, entered int, now int64) Decision {
	used := int64(entered - log.After(float64(now-r.Length)))
	return Decision{Allowed: true, Limit: r.Limit, Remaining: max(r.Limit-used, 0), Free: true}
}

// admits returns the earliest time, from t on, at which a call of cost <= Limit is admitted.
//
// Only lapsing hits free capacity. With over hits too many in the window, the call is denied until
// the over-th oldest of them lapses; by then hits in the future may have entered the window, so
// check again from there.
func (r Window) admits(log Log, t, cost int64, budget *int) int64 {
	for t <= MaxCount { // doubles count milliseconds one by one up to here, the year 287396
		lapsed := log.After(float64(t - r.Length))
		used := int64(log.After(float64(t)) - lapsed)
		over := used + hits(cost) - r.Limit
		if over <= 0 {
			return t
		}
		next := lapsed + int(over) - 1
		if *budget--; *budget < 0 {
			next = log.Len() - 1
		}
		t = r.lapse(log.At(next))
	}
	return forever
}

// lapse returns the first whole millisecond at which a hit at time at does not count.
func (r Window) lapse(at float64) int64 { return later(ceil(at), r.Length) }

// resetAfter returns how long until the last hit leaves the window. added: one is being
// added at now; entered is the rank of the first hit that is later than now.
func resetAfter(log Log, window int64, entered int, now int64, added bool) int64 {
	n := log.Len()
	if added && entered == n {
		return window // no hit is later than the new one
	}
	if n == 0 {
		return 0
	}
	reset := until(Window{Length: window}.lapse(log.At(n-1)), now)
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
