package limit

// Fixed is the rule of a fixed window: at most Limit hits in each of the windows that Window cuts time
// into. Around the edge of two windows twice the limit may pass: Limit at the end of one and Limit at
// the start of the next.
type Fixed struct {
	Limit  int64
	Window Window
}

// Count is the state of a fixed window: Used hits in the window that began at the Unix millisecond
// Start. The zero value is an unused limiter.
//
// The rule may change from call to call. Hits counted from a Start inside the window of now count in
// it (the window was lengthened); those from an earlier Start are forgotten.
type Count struct{ Start, Used int64 }

// Take asks for cost hits at Unix millisecond now and returns the state after the call. It is s itself
// unless the call was admitted and cost something. A cost of 0 is a peek.
//
// Time does not run backward: a now before s.Start is held against the window of s.Start.
func (f Fixed) Take(s Count, now, cost int64) (Count, Decision) {
	at := now
	if s.Used > 0 {
		at = max(now, s.Start)
	}
	start, end := f.Window.Bounds(at)
	var used int64
	if s.Start >= start {
		used = s.Used
	}
	d := Decision{Limit: f.Limit, Allowed: hits(cost) <= f.Limit-used}
	switch {
	case hits(cost) > f.Limit:
		d.RetryAfter = Never
	case !d.Allowed:
		d.RetryAfter = until(end, now)
	case cost > 0:
		used += cost
		s = Count{Start: start, Used: used}
	}
	d.Remaining = max(f.Limit-used, 0)
	if used > 0 {
		d.ResetAfter = until(end, now)
	}
	return s, d
}
