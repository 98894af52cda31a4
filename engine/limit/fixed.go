package limit

// Fixed is the rule of a fixed window: at most Limit hits in each of the windows that Window cuts
// time into. Around the edge of two windows twice the limit may pass: Limit at the end of one and
// Limit at the start of the next.
type Fixed struct {
	Limit  int64
	Window Windows
}

// Count is the state of a fixed window: Used hits in the window that began at the Unix millisecond
// Start and lasts Length ms. The zero value is an unused limiter.
//
// A Length of 0 is not known: states that were stored before it was kept have none. Hits counted
// from a Start inside the window of now then count in it, and those from an earlier Start are
// forgotten.
type Count struct{ Start, Length, Used int64 }

// Take asks for cost hits at Unix millisecond now and returns the state after the call. It is s
// itself unless the call was admitted and cost something. A cost of 0 is a peek.
//
// Time does not run backward: a now before s.Start is held against the window of s.Start.
//
// The rule may change from call to call. A window that contains the one that is being counted takes
// over its hits. Any other has to wait until that one ends: what is used in it says neither how
// many hits are in the other, nor could it be derived from a count of the other afterwards. Until
// then ok is false, and there is no Decision.
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

// End is the first moment after the window, if its Length is known.
func (s Count) End() int64 { return s.Start + s.Length }
