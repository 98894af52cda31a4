package limit

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestCounterTakeDecides(t *testing.T) {
	c := Counter{Limit: 10, Window: 100}
	steps := []struct {
		at, cost int64
		state    Counts
		want     Decision
	}{
		{1020, 0, Counts{}, Decision{Allowed: true, Limit: 10, Remaining: 10}},
		{1020, 11, Counts{}, Decision{Limit: 10, Remaining: 10, RetryAfter: Never}},
		{1020, 8, Counts{1000, 100, 8, 0}, Decision{Allowed: true, Limit: 10, Remaining: 2, ResetAfter: 180}},
		// ceil(8*.87) is 7
		{1020, 3, Counts{1000, 100, 8, 0}, Decision{Limit: 10, Remaining: 2, RetryAfter: 93, ResetAfter: 180}},
		{1112, 3, Counts{1000, 100, 8, 0}, Decision{Limit: 10, Remaining: 2, RetryAfter: 1, ResetAfter: 88}},
		{1113, 3, Counts{1100, 100, 3, 8}, Decision{Allowed: true, Limit: 10, ResetAfter: 187}},
		{1150, 1, Counts{1100, 100, 4, 8}, Decision{Allowed: true, Limit: 10, Remaining: 2, ResetAfter: 150}},
		// the clock went back
		{1140, 3, Counts{1100, 100, 4, 8}, Decision{Limit: 10, Remaining: 1, RetryAfter: 23, ResetAfter: 160}},
		{1200, 7, Counts{1100, 100, 4, 8}, Decision{Limit: 10, Remaining: 6, RetryAfter: 25, ResetAfter: 100}},
		{1300, 10, Counts{1300, 100, 10, 0}, Decision{Allowed: true, Limit: 10, ResetAfter: 200}},
	}
	var s Counts
	for i, step := range steps {
		var d Decision
		s, d = c.Take(s, step.at, step.cost)
		if s != step.state || d != step.want {
			t.Errorf("step %d: got %+v %+v, want %+v %+v", i, s, d, step.state, step.want)
			s = step.state
		}
	}
}

// With another window the counts start anew: what was used is Current. Calls that are not admitted,
// and peeks, see the old window.
func TestCounterTakesOverAnotherWindow(t *testing.T) {
	s := Counts{1000, 100, 3, 4}
	for _, step := range []struct {
		at, cost int64
		state    Counts
		want     Decision
	}{
		{1075, 1, Counts{1050, 50, 5, 0}, Decision{Allowed: true, Limit: 10, Remaining: 5, ResetAfter: 75}}, // 3+4/4
		{1110, 2, Counts{1100, 50, 5, 0}, Decision{Allowed: true, Limit: 10, Remaining: 5, ResetAfter: 90}},
		{1075, 0, s, Decision{Allowed: true, Limit: 10, Remaining: 6, ResetAfter: 125}},
		{1075, 7, s, Decision{Limit: 10, Remaining: 6, RetryAfter: 25, ResetAfter: 125}},
		{1075, 8, s, Decision{Limit: 10, Remaining: 6, RetryAfter: 59, ResetAfter: 125}},
		{1075, 11, s, Decision{Limit: 10, Remaining: 6, RetryAfter: Never, ResetAfter: 125}},
		{1200, 1, Counts{1200, 50, 1, 0}, Decision{Allowed: true, Limit: 10, Remaining: 9, ResetAfter: 100}},
	} {
		if after, d := (Counter{10, 50}).Take(s, step.at, step.cost); after != step.state || d != step.want {
			t.Errorf("cost %d at %d: %+v %+v, want %+v %+v", step.cost, step.at, after, d, step.state, step.want)
		}
	}
}

// Two windows in turn on one key admit no more in a burst than one of them.
func TestCountersInTurnKeepTheirBound(t *testing.T) {
	rules := []Counter{{10, 10_000}, {10, 20_000}}
	var s Counts
	admitted := 0
	for at := range int64(20_000) {
		var d Decision
		if s, d = rules[at%2].Take(s, epoch+19_990+at, 1); d.Allowed {
			admitted++
		}
	}
	if admitted > 20 {
		t.Errorf("%d admitted", admitted)
	}
}

// Whatever the rules in turn: at most twice the largest limit within the shortest window. No call
// is denied for ever.
func TestCountersInTurnAreBounded(t *testing.T) {
	traces(t, 300, func(rnd *rand.Rand) {
		var rules []Counter
		most, shortest, longest := int64(0), int64(MaxDuration), int64(0)
		for range between(rnd, 2, 4) {
			c := Counter{between(rnd, 1, 12), between(rnd, 1, 50)}
			rules = append(rules, c)
			most, shortest, longest = max(most, c.Limit), min(shortest, c.Window), max(longest, c.Window)
		}
		var s Counts
		var taken []hit
		now, last := epoch+between(rnd, 0, hourMs), int64(0)
		for range 400 {
			now += between(rnd, 0, 3)
			c, cost := rules[rnd.IntN(len(rules))], between(rnd, 0, 3)
			after, d := c.Take(s, now, cost)
			switch {
			case d.Allowed && cost > 0:
				taken, last = append(taken, hit{now, cost}), now
			case !d.Allowed && cost <= c.Limit && now+d.RetryAfter > last+2*longest:
				t.Errorf("%+v at %d: %+v, %d ms after the last hit", c, now, d, now-last)
			}
			s = after
			recent := int64(0)
			for _, h := range taken {
				if h.at > now-shortest {
					recent += h.n
				}
			}
			if recent > 2*most {
				t.Errorf("%d hits within %d ms by %+v", recent, shortest, rules)
			}
		}
	})
}

func TestCounterRefundRemovesNewestHits(t *testing.T) {
	for _, step := range []struct {
		now, n int64
		after  Counts
		back   int64
	}{
		{1050, 2, Counts{1000, 100, 1, 4}, 2},
		{1050, 5, Counts{1000, 100, 0, 2}, 5},
		{1050, MaxCount, Counts{}, 7},
		{1100, 2, Counts{1100, 100, 0, 1}, 2},
		{1200, 2, Counts{}, 0},
		{900, 1, Counts{1000, 100, 2, 4}, 1},
	} {
		if after, back := (Counts{1000, 100, 3, 4}).Refund(step.now, step.n); after != step.after || back != step.back {
			t.Errorf("%d at %d: %+v %d, want %+v %d", step.n, step.now, after, back, step.after, step.back)
		}
	}
}

// counterSubject's oracle counts all hits by the definition, in fractions.
type counterSubject struct {
	rule   Counter
	kept   Counts
	taken  []hit
	window int64 // in which taken is counted: that of the last admitted call
}

func newCounter(rnd *rand.Rand) subject {
	c := Counter{between(rnd, 1, 6), between(rnd, 1, 50)}
	return &counterSubject{rule: c, window: c.Window}
}

func (s *counterSubject) ask(now, cost int64) Decision {
	_, d := s.rule.Take(s.kept, now, cost)
	return d
}

func (s *counterSubject) call(now, cost int64) (d Decision) {
	s.kept, d = s.rule.Take(s.kept, now, cost)
	if d.Allowed && cost > 0 {
		at := s.held(now)
		if s.window != s.rule.Window {
			s.taken, s.window = []hit{{at, s.used(now)}}, s.rule.Window
		}
		s.taken = append(s.taken, hit{at, cost})
	}
	return d
}

func (s *counterSubject) state() string { return fmt.Sprint(s.kept) }
func (s *counterSubject) twin() subject {
	c := *s
	c.taken = slices.Clone(s.taken)
	return &c
}

func (s *counterSubject) disturb(rnd *rand.Rand, _ int64) {
	s.rule.Limit = between(rnd, 1, 6)
	if rnd.IntN(2) == 0 {
		s.rule.Window = between(rnd, 1, 50)
	}
}

func (s *counterSubject) limit(int) int64 { return s.rule.Limit }

// held returns now, or the start of the last used window if the clock has gone back before it.
func (s *counterSubject) held(now int64) int64 {
	if n := len(s.taken); n > 0 {
		return max(now, s.taken[n-1].at/s.window*s.window)
	}
	return now
}

func (s *counterSubject) in(window int64) (n int64) {
	for _, h := range s.taken {
		if h.at/s.window == window {
			n += h.n
		}
	}
	return n
}

func (s *counterSubject) used(now int64) int64 {
	now = s.held(now)
	window := now / s.window
	weight := big.NewRat(s.in(window-1)*(s.window-now%s.window), s.window)
	return s.in(window) + ceilRat(weight).Int64()
}

func (s *counterSubject) admits(now, cost int64) bool { return s.used(now)+cost <= s.rule.Limit }
func (s *counterSubject) left(now int64, _ int) int64 { return maxAdmitted(s, now, s.rule.Limit) }
func (s *counterSubject) unused(now int64) bool       { return s.used(now) == 0 }

func TestCounterAtTheExtremes(t *testing.T) {
	traces(t, 3000, func(rnd *rand.Rand) {
		var s Counts
		for range 8 {
			c := Counter{extreme(rnd, MaxCount), extreme(rnd, MaxDuration)}
			now, cost, before := extreme(rnd, year9999), extreme(rnd, MaxCount), s
			var d Decision
			s, d = c.Take(s, now, cost)
			_, then := c.Take(before, now+max(d.RetryAfter, 0), cost)
			_, earlier := c.Take(before, now+max(d.RetryAfter-1, 0), cost)
			switch {
			case d.Allowed && (d.RetryAfter != 0 || s.Current < cost || d.ResetAfter <= 0),
				!d.Allowed && (s != before || (d.RetryAfter == Never) != (cost > c.Limit) || d.RetryAfter == 0),
				d.RetryAfter > 0 && (!then.Allowed || earlier.Allowed),
				d.Remaining < 0, d.Remaining > c.Limit, d.ResetAfter < 0:
				t.Errorf("%+v of %+v at %d, cost %d: %+v %+v", c, before, now, cost, s, d)
			}
		}
	})
}
