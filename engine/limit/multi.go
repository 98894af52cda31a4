package limit

// MaxSteps is how many hits in the future one call skips one by one. Clocks that are a little ahead
// cause a few; only a client can write more, and then a call must not delay others for long.
const MaxSteps = 4096

// DecideAll decides a call of cost at Unix millisecond now against one or more sliding windows over
// one log. It is admitted only if every rule admits it; the caller then adds cost hits at now,
// once. DecideAll itself changes nothing. A cost of 0 is a peek.
//
// Index, Limit and Remaining are about one rule: for a denied call the one with the longest wait,
// for an admitted call the one with the least remaining, the first if several are equal. RetryAfter
// is until all rules admit, ResetAfter is that of the longest window.
//
// A hit in the future counts from its time on: RetryAfter and ResetAfter take it into account.
// Without such hits, the call looks up one rank, one more rank and at most one time for each rule,
// and the last time unless it adds a hit. With such hits, a denied call may look up two more ranks
// for each rule and hit, up to MaxSteps in all: after that, RetryAfter is when the last hit has
// lapsed, which is not too early but may be too late.
func DecideAll(rules []Window, log Log, now, cost int64) Decision {
	entered, budget := log.After(float64(now)), MaxSteps
	answer := rules[0].decide(log, entered, now, cost, &budget)
	for i, r := range rules[1:] {
		if d := r.decide(log, entered, now, cost, &budget); d.tighter(answer) {
			answer, answer.Index = d, i+1
		}
	}
	if answer.RetryAfter > 0 && entered < log.Len() {
		answer.RetryAfter = until(AdmitsFrom(rules, log, now, cost, &budget), now)
	}
	answer.ResetAfter = resetAfter(log, Longest(rules), entered, now, answer.Allowed && cost > 0)
	return answer
}

// RepeatedAll decides a call at Unix millisecond now whose id is in the longest window already: it
// is admitted, and the caller adds nothing, because its hits are counted. The answer is about the
// rule with the least remaining.
func RepeatedAll(rules []Window, log Log, now int64) Decision {
	entered := log.After(float64(now))
	answer := rules[0].repeated(log, entered, now)
	for i, r := range rules[1:] {
		if d := r.repeated(log, entered, now); d.tighter(answer) {
			answer, answer.Index = d, i+1
		}
	}
	answer.ResetAfter = resetAfter(log, Longest(rules), entered, now, false)
	return answer
}

// tighter reports whether a combined answer is about d's rule rather than about o's; false if
// neither is tighter.
func (d Decision) tighter(o Decision) bool {
	switch {
	case d.Allowed != o.Allowed:
		return o.Allowed
	case d.Allowed:
		return d.Remaining < o.Remaining
	}
	return uint64(d.RetryAfter) > uint64(o.RetryAfter) // Never, which is -1, becomes the longest
}

// AdmitsFrom returns the earliest time, from Unix millisecond t on, at which every rule admits a
// call of cost, which is not above any limit. It decrements the budget for each hit that it skips;
// when the budget is used up, it returns when the last hit has lapsed.
func AdmitsFrom(rules []Window, log Log, t, cost int64, budget *int) int64 {
	for agreed := 0; agreed < len(rules); {
		agreed = 0
		for _, r := range rules {
			next := r.admits(log, t, cost, budget)
			if next == t {
				agreed++
			}
			t = next
		}
	}
	return t
}

// Longest returns the longest window of one or more rules. A log keeps the hits within it.
func Longest(rules []Window) int64 {
	window := rules[0].Length
	for _, r := range rules[1:] {
		window = max(window, r.Length)
	}
	return window
}
