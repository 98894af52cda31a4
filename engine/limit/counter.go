package limit

import "math/bits"

// Counter is the rule of a sliding window counter: two counts in place of a log. Windows of Window
// ms are aligned to the Unix epoch. With e ms of the current one over,
//
//	used = current + ceil(previous * (Window - e) / Window)
//
// and a call is admitted if used + cost <= Limit. This assumes that the hits of the previous window
// were evenly distributed: if not, an exact window may contain more hits than the limit, at most
// twice as many, or fewer.
//
// Both are at least 1; Limit at most MaxCount, Window at most MaxDuration.
type Counter struct{ Limit, Window int64 }

// Counts is the state of a sliding window counter: Current hits in the window that began at the
// Unix millisecond Start and lasts Length ms, and Previous in the one before. The zero value is an
// unused limiter.
//
// The rule may change from call to call. Until a call with another window is admitted, the counts
// are used as their own window weighs them. They then start anew: what was used is Current in the
// new window. So used falls by at most one limit within the shortest of the windows, and rules in
// turn admit at most twice the largest limit within it.
type Counts struct{ Start, Length, Current, Previous int64 }

// Take asks for cost hits at Unix millisecond now and returns the state after the call. It is s
// itself unless the call was admitted and cost something. A cost of 0 is a peek.
//
// Time does not run backward: a now before s.Start finds the counts as they were at s.Start.
func (c Counter) Take(s Counts, now, cost int64) (Counts, Decision) {
	at := now
	if s.used() {
		at = max(now, s.Start)
	}
	held := s.advance(at)
	used, reset := held.weight(at), held.ends()
	free := c.Limit - used // below 0 when the limit has shrunk
	d := Decision{Limit: c.Limit, Allowed: hits(cost) <= free}
	switch {
	case hits(cost) > c.Limit:
		d.RetryAfter = Never
	case !d.Allowed:
		d.RetryAfter = until(held.fallsTo(c.Limit-hits(cost)), now)
	case cost > 0:
		if held.Length != c.Window {
			held = Counts{Start: floor(at, c.Window), Length: c.Window, Current: used}
		}
		held.Current += cost
		free -= cost
		s, reset = held, held.ends()
	}
	d.Remaining = max(free, 0)
	d.ResetAfter = until(reset, now)
	return s, d
}

func (s Counts) used() bool { return s.Current > 0 || s.Previous > 0 }

// advance returns the counts in the window of a time that is not before s.Start.
func (s Counts) advance(at int64) Counts {
	if !s.used() || s.Length == 0 {
		return Counts{}
	}
	switch start := floor(at, s.Length); start {
	case s.Start:
		return s
	case later(s.Start, s.Length):
		return Counts{Start: start, Length: s.Length, Previous: s.Current}
	default:
		return Counts{Start: start, Length: s.Length}
	}
}

// weight returns how many hits count as used at a time within the current window.
func (s Counts) weight(at int64) int64 {
	if s.Previous == 0 {
		return s.Current
	}
	hi, lo := bits.Mul64(uint64(s.Previous), uint64(s.Start+s.Length-at))
	lo, carry := bits.Add64(lo, uint64(s.Length-1), 0) // round up
	used, _ := bits.Div64(hi+carry, lo, uint64(s.Length))
	return s.Current + int64(used)
}

// fallsTo returns the first time at which at most most hits count as used if none are added. More
// count now.
func (s Counts) fallsTo(most int64) int64 {
	end := s.Start + s.Length
	if s.Current <= most {
		return end - stays(s.Previous, most-s.Current, s.Length)
	}
	return end + s.Length - stays(s.Current, most, s.Length)
}

// stays returns for how many ms before the end of a window at most most hits of the previous one
// count.
func stays(previous, most, length int64) int64 {
	if most >= previous {
		return length
	}
	hi, lo := bits.Mul64(uint64(most), uint64(length))
	ms, _ := bits.Div64(hi, lo, uint64(previous))
	return int64(ms)
}

// ends returns the first time at which nothing counts as used.
func (s Counts) ends() int64 {
	switch {
	case s.Current > 0:
		return later(later(s.Start, s.Length), s.Length)
	case s.Previous > 0:
		return later(s.Start, s.Length)
	}
	return 0
}

// Refund removes n hits at Unix millisecond now, n >= 1, the newest first, and returns how many it
// removed: at most those that still count. Counts without hits become the zero value.
func (s Counts) Refund(now, n int64) (Counts, int64) {
	held := s.advance(max(now, s.Start))
	current := min(n, held.Current)
	previous := min(n-current, held.Previous)
	held.Current -= current
	held.Previous -= previous
	if !held.used() {
		held = Counts{}
	}
	return held, current + previous
}

// MoveBack returns the same counts in the window of an earlier time, and when they end.
func (s Counts) MoveBack(at int64) (moved Counts, ends int64) {
	s.Start = floor(at, max(s.Length, 1))
	return s, s.ends()
}
