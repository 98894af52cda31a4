package limit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestLeaseDecides(t *testing.T) {
	two := Lease{Limit: 2, TTL: 10}
	for _, step := range []struct {
		name   string
		rule   Lease
		leases []float64
		own    int
		now    int64
		cost   int64
		want   Decision
	}{
		{"the first", two, nil, -1, 100, 1, Decision{Allowed: true, Limit: 2, Remaining: 1, ResetAfter: 10}},
		{"a peek takes none", two, nil, -1, 100, 0, Decision{Allowed: true, Limit: 2, Remaining: 2}},
		{"a cost of many is one lease", two, nil, -1, 100, 99,
			Decision{Allowed: true, Limit: 2, Remaining: 1, ResetAfter: 10}},
		{"the last", two, []float64{107}, -1, 100, 1, Decision{Allowed: true, Limit: 2, ResetAfter: 10}},
		{"full", two, []float64{107, 120}, -1, 100, 1, Decision{Limit: 2, RetryAfter: 7, ResetAfter: 20}},
		{"full until 1 ms before a lease expires", two, []float64{107, 120}, -1, 106, 1,
			Decision{Limit: 2, RetryAfter: 1, ResetAfter: 14}},
		{"free when a lease expires", two, []float64{107, 120}, -1, 107, 1,
			Decision{Allowed: true, Limit: 2, ResetAfter: 13}},
		{"renewed when full", two, []float64{107, 120}, 0, 100, 1,
			Decision{Allowed: true, Limit: 2, ResetAfter: 20, Free: true}},
		{"the last to expire is renewed with a shorter TTL", two, []float64{107, 120}, 1, 100, 1,
			Decision{Allowed: true, Limit: 2, ResetAfter: 10, Free: true}},
		{"a peek renews none", two, []float64{107, 120}, 1, 100, 0,
			Decision{Allowed: true, Limit: 2, ResetAfter: 20, Free: true}},
		{"an expired lease counts as new", two, []float64{107, 120, 130}, 0, 107, 1,
			Decision{Limit: 2, RetryAfter: 13, ResetAfter: 23}},
		{"a lowered limit waits for several", two, []float64{101, 102, 103, 104, 105}, -1, 100, 1,
			Decision{Limit: 2, RetryAfter: 4, ResetAfter: 5}},
		{"renewed under a lowered limit", two, []float64{101, 102, 103}, 1, 100, 1,
			Decision{Allowed: true, Limit: 2, ResetAfter: 10, Free: true}},
		{"fractional times", two, []float64{106.5, 107.5}, -1, 106, 1,
			Decision{Limit: 2, RetryAfter: 1, ResetAfter: 2}},
		{"infinite times", two, []float64{math.Inf(1), math.Inf(1)}, -1, 100, 1,
			Decision{Limit: 2, RetryAfter: forever, ResetAfter: forever}},
	} {
		if got := step.rule.Decide(logOf(step.leases...), step.own, step.now, step.cost); got != step.want {
			t.Errorf("%s: got %+v, want %+v", step.name, got, step.want)
		}
	}
}

// leaseSubject's oracle is a plain list of the leases and their expiry times. Each call has one of
// a few ids.
type leaseSubject struct {
	rule   Lease
	leases []lease
	id     int
}

type lease struct {
	id     int
	lapses float64
}

func newLease(rnd *rand.Rand) subject {
	return &leaseSubject{rule: Lease{between(rnd, 1, 4), between(rnd, 1, 60)}}
}

func (s *leaseSubject) ask(now, cost int64) Decision {
	log := logOf()
	for _, l := range s.leases {
		log.times = append(log.times, l.lapses)
	}
	return s.rule.Decide(log, slices.IndexFunc(s.leases, func(l lease) bool { return l.id == s.id }), now, cost)
}

func (s *leaseSubject) call(now, cost int64) Decision {
	d := s.ask(now, cost)
	if d.Allowed && cost > 0 {
		s.put(s.id, float64(now+s.rule.TTL))
	}
	return d
}

func (s *leaseSubject) put(id int, lapses float64) {
	s.leases = append(slices.DeleteFunc(s.leases, func(l lease) bool { return l.id == id }), lease{id, lapses})
	slices.SortStableFunc(s.leases, func(a, b lease) int {
		if a.lapses < b.lapses {
			return -1
		}
		return 1
	})
}

func (s *leaseSubject) state() string { return fmt.Sprint(s.leases) }
func (s *leaseSubject) twin() subject {
	c := *s
	c.leases = slices.Clone(s.leases)
	return &c
}

func (s *leaseSubject) disturb(rnd *rand.Rand, now int64) {
	switch s.id = rnd.IntN(8); rnd.IntN(6) {
	case 0:
		s.rule = Lease{between(rnd, 1, 4), between(rnd, 1, 60)}
	case 1: // as by ZADD
		s.put(rnd.IntN(8), float64(now)+float64(between(rnd, -40, 200))/4)
	case 2: // released
		s.leases = slices.DeleteFunc(s.leases, func(l lease) bool { return l.id == s.id })
	}
}

func (s *leaseSubject) limit(int) int64 { return s.rule.Limit }

func (s *leaseSubject) held(now int64) (held int64, own bool) {
	for _, l := range s.leases {
		if float64(now) < l.lapses {
			held++
			own = own || l.id == s.id
		}
	}
	return held, own
}

func (s *leaseSubject) admits(now, _ int64) bool {
	held, own := s.held(now)
	return own || held < s.rule.Limit
}

func (s *leaseSubject) left(now int64, _ int) int64 {
	held, _ := s.held(now)
	return max(s.rule.Limit-held, 0)
}

func (s *leaseSubject) unused(now int64) bool {
	held, _ := s.held(now)
	return held == 0
}
