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

// The counts restart with a changed window, and Previous is all that the old window still counted.
func TestCounterTakesOverAnotherWindow(t *testing.T) {
	s := Counts{1000, 100, 3, 4}
	after, d := Counter{10, 50}.Take(s, 1075, 1)
	if (after != Counts{1050, 50, 1, 7}) || d.Remaining != 5 { // ceil(7/2) and 1
		t.Errorf("%+v %+v", after, d)
	}
	after, d = Counter{10, 50}.Take(s, 1110, 1) // the 4 do not count
	if (after != Counts{1100, 50, 1, 3}) || d.Remaining != 6 {
		t.Errorf("%+v %+v", after, d)
	}
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
	rule  Counter
	kept  Counts
	taken []hit
}

func newCounter(rnd *rand.Rand) subject {
	return &counterSubject{rule: Counter{between(rnd, 1, 6), between(rnd, 1, 50)}}
}

func (s *counterSubject) ask(now, cost int64) Decision {
	_, d := s.rule.Take(s.kept, now, cost)
	return d
}

func (s *counterSubject) call(now, cost int64) (d Decision) {
	s.kept, d = s.rule.Take(s.kept, now, cost)
	if d.Allowed && cost > 0 {
		s.taken = append(s.taken, hit{s.held(now), cost})
	}
	return d
}

func (s *counterSubject) state() string { return fmt.Sprint(s.kept) }
func (s *counterSubject) twin() subject {
	c := *s
	c.taken = slices.Clone(s.taken)
	return &c
}

func (s *counterSubject) disturb(rnd *rand.Rand, _ int64) { s.rule.Limit = between(rnd, 1, 6) }
func (s *counterSubject) limit(int) int64                 { return s.rule.Limit }

// held returns now, or the start of the last used window if the clock has gone back before it.
func (s *counterSubject) held(now int64) int64 {
	if n := len(s.taken); n > 0 {
		return max(now, s.taken[n-1].at/s.rule.Window*s.rule.Window)
	}
	return now
}

func (s *counterSubject) in(window int64) (n int64) {
	for _, h := range s.taken {
		if h.at/s.rule.Window == window {
			n += h.n
		}
	}
	return n
}

func (s *counterSubject) used(now int64) int64 {
	now = s.held(now)
	window := now / s.rule.Window
	weight := big.NewRat(s.in(window-1)*(s.rule.Window-now%s.rule.Window), s.rule.Window)
	return s.in(window) + ceilRat(weight).Int64()
}

func (s *counterSubject) admits(now, cost int64) bool { return s.used(now)+cost <= s.rule.Limit }
func (s *counterSubject) left(now int64, _ int) int64 { return mostAdmitted(s, now, s.rule.Limit) }
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
