package limit

import (
	"math/rand/v2"
	"testing"
)

func TestFixedTakeDecides(t *testing.T) {
	f := Fixed{Limit: 3, Window: Every(10)}
	steps := []struct {
		at, cost int64
		state    Count
		want     Decision
	}{
		{104, 0, Count{}, Decision{Allowed: true, Limit: 3, Remaining: 3}},
		{104, 4, Count{}, Decision{Limit: 3, Remaining: 3, RetryAfter: Never}},
		{104, 2, Count{100, 10, 2}, Decision{Allowed: true, Limit: 3, Remaining: 1, ResetAfter: 6}},
		{105, 2, Count{100, 10, 2}, Decision{Limit: 3, Remaining: 1, RetryAfter: 5, ResetAfter: 5}},
		{105, 9, Count{100, 10, 2}, Decision{Limit: 3, Remaining: 1, RetryAfter: Never, ResetAfter: 5}},
		{109, 1, Count{100, 10, 3}, Decision{Allowed: true, Limit: 3, ResetAfter: 1}},
		{109, 0, Count{100, 10, 3}, Decision{Limit: 3, RetryAfter: 1, ResetAfter: 1}},
		{110, 0, Count{100, 10, 3}, Decision{Allowed: true, Limit: 3, Remaining: 3}},
		{110, 3, Count{110, 10, 3}, Decision{Allowed: true, Limit: 3, ResetAfter: 10}},
		// the clock went back
		{108, 1, Count{110, 10, 3}, Decision{Limit: 3, RetryAfter: 12, ResetAfter: 12}},
		{999, 1, Count{990, 10, 1}, Decision{Allowed: true, Limit: 3, Remaining: 2, ResetAfter: 1}},
	}
	var s Count
	for i, step := range steps {
		var d Decision
		var ok bool
		s, d, ok = f.Take(s, step.at, step.cost)
		if !ok || s != step.state || d != step.want {
			t.Fatalf("step %d: got %+v %+v, want %+v %+v", i, s, d, step.state, step.want)
		}
	}
}

func TestFixedTakesOverStates(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  Fixed
		state Count
		now   int64
		after Count
		want  Decision
	}{
		{"longer window: hits are taken over", Fixed{9, Every(100)}, Count{120, 10, 4}, 125,
			Count{100, 100, 5}, Decision{Allowed: true, Limit: 9, Remaining: 4, ResetAfter: 75}},
		{"shorter window, after the former has ended", Fixed{9, Every(5)}, Count{120, 10, 4}, 130,
			Count{130, 5, 1}, Decision{Allowed: true, Limit: 9, Remaining: 8, ResetAfter: 5}},
		{"unknown length: inside the window", Fixed{9, Every(5)}, Count{120, 0, 4}, 123,
			Count{120, 5, 5}, Decision{Allowed: true, Limit: 9, Remaining: 4, ResetAfter: 2}},
		{"unknown length: after the window", Fixed{9, Every(5)}, Count{120, 0, 4}, 125,
			Count{125, 5, 1}, Decision{Allowed: true, Limit: 9, Remaining: 8, ResetAfter: 5}},
		{"unknown length: longer window", Fixed{9, Every(100)}, Count{120, 0, 4}, 125,
			Count{100, 100, 5}, Decision{Allowed: true, Limit: 9, Remaining: 4, ResetAfter: 75}},
		{"nothing used, any start", Fixed{9, Every(10)}, Count{900, 7, 0}, 125,
			Count{120, 10, 1}, Decision{Allowed: true, Limit: 9, Remaining: 8, ResetAfter: 5}},
		{"limit below the hits used", Fixed{2, Every(10)}, Count{120, 10, 4}, 125,
			Count{120, 10, 4}, Decision{Limit: 2, RetryAfter: 5, ResetAfter: 5}},
		{"to a calendar day", Fixed{9, Calendar(Day, nil)}, Count{120, 10, 4}, 125,
			Count{0, dayMs, 5}, Decision{Allowed: true, Limit: 9, Remaining: 4, ResetAfter: dayMs - 125}},
	} {
		s, d, ok := c.rule.Take(c.state, c.now, 1)
		if !ok || s != c.after || d != c.want {
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
			s, d, _ = f.Take(s, now, cost)
			switch {
			case d.Allowed && (d.RetryAfter != 0 || s.Used < cost || s.Used > f.Limit ||
				d.Remaining != f.Limit-s.Used || d.ResetAfter <= 0),
				!d.Allowed && (s != before || (d.RetryAfter == Never) != (cost > f.Limit) || d.RetryAfter == 0),
				d.Remaining < 0,
				d.ResetAfter < 0:
				t.Errorf("%+v of %+v at %d, cost %d: %+v %+v", f, before, now, cost, s, d)
			}
		}
	})
}

// Until a window ends, a window that does not contain it is refused, and changes nothing.
func TestFixedRefusesAnotherWindow(t *testing.T) {
	s := Count{120, 10, 4}
	for _, c := range []struct {
		window Windows
		now    int64
		ok     bool
	}{
		{Every(5), 123, false},
		{Every(5), 119, false}, // the clock went back: it is 120
		{Every(5), 129, false},
		{Every(5), 130, true},
		{Every(8), 125, false}, // 120 to 128
		{Every(25), 124, false},
		{Every(30), 124, true},
		{Every(10), 124, true},
		{Every(20), 124, true},
		{Calendar(Minute, nil), 124, true},
	} {
		after, d, ok := Fixed{9, c.window}.Take(s, c.now, 1)
		if ok != c.ok || !ok && (after != s || d != Decision{}) {
			t.Errorf("%+v at %d: %v %+v %+v", c.window, c.now, ok, after, d)
		}
	}
}

// If calls alternate between windows on one state, no window loses hits since a call was first
// admitted in it: a later call in it is admitted only if all hits since then, of all calls, are
// within its limit.
func TestAlternatingFixedWindowsKeepHits(t *testing.T) {
	traces(t, 500, func(rnd *rand.Rand) {
		rules := []Fixed{
			{between(rnd, 1, 5), Every(between(rnd, 1, 40))},
			{between(rnd, 1, 9), Every(between(rnd, 1, 400))},
		}
		type window struct {
			rule  int
			start int64
		}
		hits := map[window]int64{} // since the first admitted call in that window
		s, now := Count{}, epoch
		for range 200 {
			now += between(rnd, 0, 12)
			i, cost := rnd.IntN(len(rules)), between(rnd, 1, 2)
			var d Decision
			if s, d, _ = rules[i].Take(s, now, cost); !d.Allowed {
				continue
			}
			start, _ := rules[i].Window.Bounds(now)
			asked := window{i, start}
			hits[asked] += 0
			for w := range hits {
				if now < w.start+rules[w.rule].Window.Length {
					hits[w] += cost
				}
			}
			if hits[asked] > rules[i].Limit {
				t.Errorf("%+v: %d in the window of rule %d from %d on", rules, hits[asked], i, start)
				return
			}
		}
	})
}
