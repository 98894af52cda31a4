package limit

// Fixed is the rule of a fixed window: at most Limit hits in each of the windows into which Window
// divides time. Around the boundary of two windows twice the limit may be admitted: Limit at the
// end of one and Limit at the start of the next.
type Fixed struct {
	Limit  int64
	Window Windows
}

// Count is the state of a fixed window: Used hits in the window that began at the Unix millisecond
// Start and lasts Length ms. The zero value is an unused limiter.
//
// A Length of 0 means unknown, in states that were stored before there was a Length. Hits counted
// from a Start inside the window of now then count in that window, and those from an earlier Start
// do not count.
type Count struct{ Start, Length, Used int64 }

// Take asks for cost hits at Unix millisecond now and returns the state after the call. It is s
// itself unless the call was admitted and cost something. A cost of 0 is a peek.
//
// Time does not run backward: a now before s.Start counts in the window of s.Start.
//
// The rule may change from call to call. A window that contains the one in the state takes over its
// hits. Any other window cannot be used until that one ends, because neither count can be derived
// from the other. Until then ok is false, and there is no Decision.
func (f Fixed) Take(s Count, now, cost int64) (after Count, d Decision, ok bool) {
	at := now
	if s.Used > 0 {
		at = max(now, s.Start)
	}
	start, end := f.Window.Bounds(at)
	if s.Used > 0 && s.Length > 0 && at < s.End() && (s.Start < start || s.End() > end) {
		return s, Decision{}, false
	}
	var used int64
	if s.Start >= start {
		used = s.Used
	}
	d = Decision{Limit: f.Limit, Allowed: hits(cost) <= f.Limit-used}
	switch {
	case hits(cost) > f.Limit:
		d.RetryAfter = Never
	case !d.Allowed:
		d.RetryAfter = until(end, now)
	case cost > 0:
		used += cost
		s = Count{Start: start, Length: end - start, Used: used}
	}
	d.Remaining = max(f.Limit-used, 0)
	if used > 0 {
		d.ResetAfter = until(end, now)
	}
	return s, d, true
}

// End returns the first time after the window, if its Length is known.
func (s Count) End() int64 { return s.Start + s.Length }
