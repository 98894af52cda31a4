package limit

import (
	"math/rand/v2"
	"testing"
)

func TestFixedSteps(t *testing.T) {
	f := Fixed{Limit: 3, Window: Every(10)}
	steps := []struct {
		at, cost int64
		state    Count
		want     Decision
	}{
		{104, 0, Count{}, Decision{Allowed: true, Limit: 3, Remaining: 3}},
		{104, 4, Count{}, Decision{Limit: 3, Remaining: 3, RetryAfter: Never}},
		{104, 2, Count{100, 2}, Decision{Allowed: true, Limit: 3, Remaining: 1, ResetAfter: 6}},
		{105, 2, Count{100, 2}, Decision{Limit: 3, Remaining: 1, RetryAfter: 5, ResetAfter: 5}},
		{105, 9, Count{100, 2}, Decision{Limit: 3, Remaining: 1, RetryAfter: Never, ResetAfter: 5}},
		{109, 1, Count{100, 3}, Decision{Allowed: true, Limit: 3, ResetAfter: 1}},
		{109, 0, Count{100, 3}, Decision{Limit: 3, RetryAfter: 1, ResetAfter: 1}},
		{110, 0, Count{100, 3}, Decision{Allowed: true, Limit: 3, Remaining: 3}},
		{110, 3, Count{110, 3}, Decision{Allowed: true, Limit: 3, ResetAfter: 10}},
		{108, 1, Count{110, 3}, Decision{Limit: 3, RetryAfter: 12, ResetAfter: 12}}, // the clock went back
		{999, 1, Count{990, 1}, Decision{Allowed: true, Limit: 3, Remaining: 2, ResetAfter: 1}},
	}
	var s Count
	for i, step := range steps {
		var d Decision
		s, d = f.Take(s, step.at, step.cost)
		if s != step.state || d != step.want {
			t.Fatalf("step %d: got %+v %+v, want %+v %+v", i, s, d, step.state, step.want)
		}
	}
}

func TestFixedStates(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  Fixed
		state Count
		now   int64
		after Count
		want  Decision
	}{
		{"lengthened: what was counted counts", Fixed{9, Every(100)}, Count{120, 4}, 125,
			Count{100, 5}, Decision{Allowed: true, Limit: 9, Remaining: 4, ResetAfter: 75}},
		{"shortened, still inside", Fixed{9, Every(5)}, Count{120, 4}, 123,
			Count{120, 5}, Decision{Allowed: true, Limit: 9, Remaining: 4, ResetAfter: 2}},
		{"shortened, and past", Fixed{9, Every(5)}, Count{120, 4}, 125,
			Count{125, 1}, Decision{Allowed: true, Limit: 9, Remaining: 8, ResetAfter: 5}},
		{"nothing used, whatever the start", Fixed{9, Every(10)}, Count{900, 0}, 125,
			Count{120, 1}, Decision{Allowed: true, Limit: 9, Remaining: 8, ResetAfter: 5}},
		{"limit below what is used", Fixed{2, Every(10)}, Count{120, 4}, 125,
			Count{120, 4}, Decision{Limit: 2, RetryAfter: 5, ResetAfter: 5}},
		{"to a calendar day", Fixed{9, Calendar(Day, nil)}, Count{120, 4}, 125,
			Count{0, 5}, Decision{Allowed: true, Limit: 9, Remaining: 4, ResetAfter: dayMs - 125}},
	} {
		s, d := c.rule.Take(c.state, c.now, 1)
		if s != c.after || d != c.want {
			t.Errorf("%s: got %+v %+v, want %+v %+v", c.name, s, d, c.after, c.want)
		}
	}
}

func TestFixedAtTheExtremes(t *testing.T) {
	traces(t, 3000, func(rnd *rand.Rand) {
		f := Fixed{extreme(rnd, MaxCount), Every(extreme(rnd, MaxDuration))}
		var s Count
		for range 8 {
			now, cost, before := extreme(rnd, year9999), extreme(rnd, MaxCount), s
			var d Decision
			s, d = f.Take(s, now, cost)
			switch {
			case d.Allowed && (d.RetryAfter != 0 || s.Used < cost || s.Used > f.Limit || d.Remaining != f.Limit-s.Used || d.ResetAfter <= 0),
				!d.Allowed && (s != before || (d.RetryAfter == Never) != (cost > f.Limit) || d.RetryAfter == 0),
				d.Remaining < 0, d.ResetAfter < 0:
				t.Errorf("%+v of %+v at %d, cost %d: %+v %+v", f, before, now, cost, s, d)
			}
		}
	})
}
