package limit

// MaxSteps is how many hits of the future one call steps over, one by one. Clocks that are a little
// ahead make a handful; only by hand does a log come to hold more, and then no call may hold up
// others for long.
const MaxSteps = 4096

// DecideAll answers a call of cost at Unix millisecond now that is held against sliding windows,
// one or more, over one log. It is admitted only if every rule admits it, and then the caller is to
// add cost hits at now, once. DecideAll itself changes nothing. A cost of 0 is a peek.
//
// Index, Limit and Remaining speak of one rule: of a denied call, the one that must be waited for
// longest; of an admitted one, the one with the least remaining; among equals, the first.
// RetryAfter is when all rules admit, and ResetAfter is of the longest window.
//
// A hit in the future counts once now reaches it: RetryAfter steps over it, ResetAfter waits for
// it. Without any, the log is asked for one rank, for one more and at most one time by each rule,
// and for the last time unless the call adds a hit. With some, a denied call may ask for two ranks
// more by each rule for every one of them, up to MaxSteps altogether: after that RetryAfter is when
// the last of the hits has lapsed, which is not too early, but may be later than need be.
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

// RepeatedAll answers a call at Unix millisecond now whose id is in the longest window already: it
// was admitted and paid for then. The caller is to add nothing. It speaks of the rule with the
// least remaining.
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

// tighter reports whether an answer made of several is to speak of d's rule rather than of o's,
// whichever comes first.
func (d Decision) tighter(o Decision) bool {
	switch {
	case d.Allowed != o.Allowed:
		return o.Allowed
	case d.Allowed:
		return d.Remaining < o.Remaining
	}
	return uint64(d.RetryAfter) > uint64(o.RetryAfter) // Never, being -1, becomes the longest
}

// AdmitsFrom returns the earliest moment, from Unix millisecond t on, at which every rule admits a
// call of cost, which is not above any limit. It takes one off the budget for each hit that it
// steps over; when that is used up, the moment is when the last hit has lapsed.
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

// Longest returns the longest window of one or more rules: it decides which
// hits a log keeps.
func Longest(rules []Window) int64 {
	window := rules[0].Length
	for _, r := range rules[1:] {
		window = max(window, r.Length)
	}
	return window
}
