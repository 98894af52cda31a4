package limit

import "testing"

func TestAndReportsTheTighterDecision(t *testing.T) {
	free := Decision{Allowed: true, Limit: 9, Remaining: 5, ResetAfter: 70, Index: 0}
	tight := Decision{Allowed: true, Limit: 3, Remaining: 1, ResetAfter: 20, Index: 1}
	short := Decision{Limit: 4, RetryAfter: 10, ResetAfter: 30, Index: 2}
	long := Decision{Limit: 5, RetryAfter: 40, ResetAfter: 40, Index: 3}
	never := Decision{Limit: 1, Remaining: 1, RetryAfter: Never, Index: 4}
	reset := func(d Decision, ms int64) Decision { d.ResetAfter = ms; return d }
	rule := func(d Decision, i int) Decision { d.Index = i; return d }
	for _, step := range []struct {
		name       string
		a, b, want Decision
	}{
		{"the least remaining", free, tight, reset(tight, 70)},
		{"a denial", free, short, reset(short, 70)},
		{"the longest wait", short, long, long},
		{"forever", long, never, reset(never, 40)},
		{"among equals the first", rule(short, 7), rule(short, 2), rule(short, 2)},
	} {
		if got := step.a.And(step.b); got != step.want {
			t.Errorf("%s: got %+v, want %+v", step.name, got, step.want)
		}
		if got := step.b.And(step.a); got != step.want {
			t.Errorf("%s, the other way round: got %+v, want %+v", step.name, got, step.want)
		}
	}
}

// A lease that could be renewed now may have expired when others do.
func TestLeaseAdmitsFromFindsEarliestTime(t *testing.T) {
	two := Lease{Limit: 2, TTL: 10}
	leases := logOf(105, 110, 120.5)
	for _, step := range []struct {
		own     int
		t, want int64
	}{{-1, 100, 110}, {0, 100, 100}, {0, 104, 104}, {0, 105, 110}, {1, 109, 109}, {2, 115, 115}, {-1, 111, 111}} {
		if got := two.AdmitsFrom(leases, step.own, step.t); got != step.want {
			t.Errorf("%d from %d: got %d, want %d", step.own, step.t, got, step.want)
		}
	}
}
