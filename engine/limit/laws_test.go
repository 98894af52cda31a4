package limit

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The five laws of every limiter, checked against oracles without states and formulas: they keep
// every admitted hit and count the hits by the algorithm's definition.

// subject is a limiter under test with its oracle.
type subject interface {
	// ask calls the limiter and keeps nothing.
	ask(now, cost int64) Decision
	// call calls the limiter and keeps what it returns; an admitted call is recorded in the oracle.
	call(now, cost int64) Decision
	// state returns the state of the limiter as text.
	state() string
	// twin returns an independent copy.
	twin() subject
	// disturb may do what other clients can do between two calls: change the limit, add hits by
	// ZADD.
	disturb(rnd *rand.Rand, now int64)

	// The oracle: limit returns the limit of a rule, and the others answer by definition.
	limit(rule int) int64
	admits(now, cost int64) bool
	left(now int64, rule int) int64
	unused(now int64) bool
}

// asks is admits for a call or a peek, which is decided like a cost of 1.
func asks(s subject, now, cost int64) bool { return s.admits(now, max(cost, 1)) }

type hit struct{ at, n int64 }

// tokenSubject's oracle is the arrival curve that defines a token bucket: the hits admitted from
// any admitted call on until now are at most capacity + refill * elapsed / period.
type tokenSubject struct {
	rule  Bucket
	kept  Tokens
	taken []hit
}

func newToken(rnd *rand.Rand) subject {
	return &tokenSubject{rule: Bucket{between(rnd, 1, 6), between(rnd, 1, 5), between(rnd, 1, 40)}}
}

func (s *tokenSubject) ask(now, cost int64) Decision {
	_, d := s.rule.Take(s.kept, now, cost)
	return d
}

func (s *tokenSubject) call(now, cost int64) (d Decision) {
	s.kept, d = s.rule.Take(s.kept, now, cost)
	if d.Allowed && cost > 0 {
		s.taken = append(s.taken, hit{s.held(now), cost})
	}
	return d
}

func (s *tokenSubject) state() string { return fmt.Sprint(s.kept) }
func (s *tokenSubject) twin() subject {
	c := *s
	c.taken = slices.Clone(s.taken)
	return &c
}
func (s *tokenSubject) disturb(*rand.Rand, int64) {}
func (s *tokenSubject) limit(int) int64           { return s.rule.Capacity }

// held returns now, or the time of the last admitted call if the clock has gone back before it.
func (s *tokenSubject) held(now int64) int64 {
	if n := len(s.taken); n > 0 {
		return max(now, s.taken[n-1].at)
	}
	return now
}

func (s *tokenSubject) admits(now, cost int64) bool {
	if cost > s.rule.Capacity {
		return false
	}
	now = s.held(now)
	for i := len(s.taken) - 1; i >= 0; i-- {
		cost += s.taken[i].n
		if (cost-s.rule.Capacity)*s.rule.Period > s.rule.Refill*(now-s.taken[i].at) {
			return false
		}
	}
	return true
}

func (s *tokenSubject) left(now int64, _ int) int64 { return maxAdmitted(s, now, s.rule.Capacity) }

// unused reports whether the bucket is full: only a full one admits its whole capacity at once.
func (s *tokenSubject) unused(now int64) bool { return s.admits(now, s.rule.Capacity) }

// fixedSubject's oracle compares local dates and times as text.
type fixedSubject struct {
	rule  Fixed
	kept  Count
	label func(now int64) string // differs from window to window
	taken []hit
}

func newFixed(rnd *rand.Rand) subject {
	length := between(rnd, 1, 50)
	return &fixedSubject{
		rule:  Fixed{between(rnd, 1, 6), Every(length)},
		label: func(now int64) string { return fmt.Sprint(now / length) },
	}
}

func newCalendar(rnd *rand.Rand) subject {
	units := []struct {
		unit  Unit
		label func(time.Time) string
	}{
		{Minute, func(t time.Time) string { return t.Format("2006-01-02 15:04 -0700") }},
		{Hour, func(t time.Time) string { return t.Format("2006-01-02 15 -0700") }},
		{Day, func(t time.Time) string { return t.Format("2006-01-02") }},
		{Week, func(t time.Time) string { y, w := t.ISOWeek(); return fmt.Sprint(y, w) }},
		{Month, func(t time.Time) string { return t.Format("2006-01") }},
		{Year, func(t time.Time) string { return t.Format("2006") }},
	}
	u := units[rnd.IntN(len(units))]
	loc := calendarZones[rnd.IntN(len(calendarZones))]
	return &fixedSubject{
		rule:  Fixed{between(rnd, 1, 6), Calendar(u.unit, loc)},
		label: func(now int64) string { return u.label(time.UnixMilli(now).In(loc)) },
	}
}

// calendarZones are zones whose clocks never go back over a midnight, so labels do not repeat.
var calendarZones = func() (zones []*time.Location) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Asia/Tokyo",
		"Australia/Lord_Howe"} {
		loc, err := time.LoadLocation(name)
		if err != nil {
			panic(err)
		}
		zones = append(zones, loc)
	}
	return zones
}()

func (s *fixedSubject) ask(now, cost int64) Decision {
	_, d, _ := s.rule.Take(s.kept, now, cost)
	return d
}

func (s *fixedSubject) call(now, cost int64) (d Decision) {
	s.kept, d, _ = s.rule.Take(s.kept, now, cost)
	if d.Allowed && cost > 0 {
		s.taken = append(s.taken, hit{s.held(now), cost})
	}
	return d
}

func (s *fixedSubject) state() string { return fmt.Sprint(s.kept) }
func (s *fixedSubject) twin() subject {
	c := *s
	c.taken = slices.Clone(s.taken)
	return &c
}

func (s *fixedSubject) disturb(rnd *rand.Rand, _ int64) { s.rule.Limit = between(rnd, 1, 6) }
func (s *fixedSubject) limit(int) int64                 { return s.rule.Limit }

// held returns now, or the start of the last used window if the clock has gone back before it.
func (s *fixedSubject) held(now int64) int64 {
	if n := len(s.taken); n > 0 && s.taken[n-1].at > now {
		return s.taken[n-1].at
	}
	return now
}

func (s *fixedSubject) used(now int64) (used int64) {
	label := s.label(s.held(now))
	for i := len(s.taken) - 1; i >= 0 && s.label(s.taken[i].at) == label; i-- {
		used += s.taken[i].n
	}
	return used
}

func (s *fixedSubject) admits(now, cost int64) bool { return s.used(now)+cost <= s.rule.Limit }
func (s *fixedSubject) left(now int64, _ int) int64 { return maxAdmitted(s, now, s.rule.Limit) }
func (s *fixedSubject) unused(now int64) bool       { return s.used(now) == 0 }

// slideSubject's oracle searches all hits. One rule is RL.SLIDE, several are RL.MULTI.
type slideSubject struct {
	rules []Window
	log   *sliceLog
	taken []float64
}

func newSlide(rnd *rand.Rand) subject {
	return &slideSubject{rules: []Window{randomRule(rnd)}, log: logOf()}
}

func newMulti(rnd *rand.Rand) subject {
	s := &slideSubject{log: logOf()}
	for range between(rnd, 2, 4) {
		s.rules = append(s.rules, randomRule(rnd))
	}
	return s
}

func randomRule(rnd *rand.Rand) Window { return Window{between(rnd, 1, 6), between(rnd, 1, 50)} }

func (s *slideSubject) ask(now, cost int64) Decision {
	return DecideAll(s.rules, s.log, now, cost)
}

func (s *slideSubject) call(now, cost int64) Decision {
	d := s.ask(now, cost)
	if d.Allowed {
		s.add(float64(now), cost)
	}
	return d
}

func (s *slideSubject) add(at float64, n int64) {
	s.log.add(at, n)
	for range n {
		s.taken = append(s.taken, at)
	}
}

func (s *slideSubject) state() string { return fmt.Sprint(s.log.times) }
func (s *slideSubject) twin() subject {
	return &slideSubject{slices.Clone(s.rules), logOf(slices.Clone(s.log.times)...), slices.Clone(s.taken)}
}

func (s *slideSubject) disturb(rnd *rand.Rand, now int64) {
	switch rnd.IntN(3) {
	case 0:
		s.rules[rnd.IntN(len(s.rules))] = randomRule(rnd)
	default: // as by ZADD, in quarters of a millisecond, in the past or future
		s.add(float64(now)+float64(between(rnd, -200, 400))/4, between(rnd, 1, 3))
	}
}

func (s *slideSubject) limit(rule int) int64 { return s.rules[rule].Limit }

func (s *slideSubject) used(now int64, r Window) (used int64) {
	for _, at := range s.taken {
		if at <= float64(now) && at > float64(now-r.Length) {
			used++
		}
	}
	return used
}

func (s *slideSubject) admits(now, cost int64) bool {
	return !slices.ContainsFunc(s.rules, func(r Window) bool { return s.used(now, r)+cost > r.Limit })
}

func (s *slideSubject) left(now int64, rule int) int64 {
	one := &slideSubject{rules: s.rules[rule : rule+1], taken: s.taken}
	return maxAdmitted(one, now, s.rules[rule].Limit)
}

func (s *slideSubject) unused(now int64) bool {
	for _, at := range s.taken {
		for _, r := range s.rules {
			if at > float64(now-r.Length) {
				return false
			}
		}
	}
	return true
}

// maxAdmitted tries every cost from limit down.
func maxAdmitted(s subject, now, limit int64) int64 {
	for n := limit; n > 0; n-- {
		if s.admits(now, n) {
			return n
		}
	}
	return 0
}

// step is one call of a trace.
type step struct {
	now, cost int64
	before    subject // the limiter as it was
	after     subject
	got       Decision
}

// eachStep runs every kind of limiter through random traces and passes every call to check, which
// returns the fault, or "".
func eachStep(t *testing.T, check func(step) string) {
	kinds := []struct {
		name string
		new  func(*rand.Rand) subject
		long int64 // the scale of clock steps, in ms
	}{
		{"token", newToken, 40},
		{"fixed", newFixed, 50},
		{"calendar", newCalendar, 2 * hourMs},
		{"slide", newSlide, 50},
		{"multi", newMulti, 50},
		{"lease", newLease, 60},
		{"counter", newCounter, 50},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			traces(t, 150, func(rnd *rand.Rand) {
				s, now := kind.new(rnd), epoch+between(rnd, 0, 365*dayMs)
				for i := range 60 {
					now += clockStep(rnd, kind.long)
					if rnd.IntN(8) == 0 {
						s.disturb(rnd, now)
					}
					st := step{now: now, cost: randomCost(rnd), before: s.twin()}
					st.got = s.call(st.now, st.cost)
					st.after = s
					if wrong := check(st); wrong != "" {
						t.Errorf(
							"call %d at %d of cost %d on %s: %+v: %s\n%+v",
							i,
							st.now,
							st.cost,
							st.before.state(),
							st.got,
							wrong,
							st.before,
						)
						return
					}
				}
			})
		})
	}
}

// clockStep returns a step of the clock: mostly none or a small one, sometimes a large one forward
// or a small one back.
func clockStep(rnd *rand.Rand, long int64) int64 {
	switch rnd.IntN(20) {
	case 0:
		return between(rnd, 0, 20*long)
	case 1:
		return -between(rnd, 0, long/4)
	case 2, 3, 4, 5, 6, 7:
		return 0
	case 8, 9, 10, 11:
		return between(rnd, 0, long)
	}
	return between(rnd, 0, long/10)
}

func randomCost(rnd *rand.Rand) int64 {
	switch rnd.IntN(10) {
	case 0, 1:
		return 0
	case 2, 3:
		return between(rnd, 2, 7)
	}
	return 1
}

func TestLaw1DeniedCallsAndPeeksChangeNothing(t *testing.T) {
	eachStep(t, func(s step) string {
		if (!s.got.Allowed || s.cost == 0) && s.after.state() != s.before.state() {
			return "state is now " + s.after.state()
		}
		return ""
	})
}

func TestLaw2NeverOver(t *testing.T) {
	eachStep(t, func(s step) string {
		if s.got.Allowed && !asks(s.before, s.now, s.cost) {
			return "admitted over the limit"
		}
		return ""
	})
}

func TestLaw3NeverUnder(t *testing.T) {
	eachStep(t, func(s step) string {
		if !s.got.Allowed && asks(s.before, s.now, s.cost) {
			return "denied below the limit"
		}
		return ""
	})
}

func TestLaw4RetryAfterIsExact(t *testing.T) {
	eachStep(t, func(s step) string {
		wait := s.got.RetryAfter
		switch {
		case s.got.Allowed && wait != 0:
			return "admitted, but with RetryAfter"
		case s.got.Allowed:
			return ""
		case wait == Never:
			for _, at := range []int64{s.now + 1, s.now + 1000, s.now + MaxDuration} {
				if asks(s.before, at, s.cost) {
					return fmt.Sprint("would be admitted at ", at)
				}
			}
			return ""
		case wait <= 0:
			return "denied without a wait"
		}
		for early := max(1, wait-5000); early < wait; early++ {
			if asks(s.before, s.now+early, s.cost) {
				return fmt.Sprint("would be admitted after ", early)
			}
			// far from the end of a long wait, samples suffice
			if early < wait-20 && wait > 1000 {
				early += wait / 40
			}
		}
		if s.before.ask(s.now+wait-1, s.cost).Allowed || s.after.ask(s.now+wait-1, s.cost).Allowed {
			return "admitted 1 ms earlier"
		}
		if !asks(s.before, s.now+wait, s.cost) || !s.after.ask(s.now+wait, s.cost).Allowed {
			return "not admitted then"
		}
		return ""
	})
}

func TestLaw5HitsOfACallAreAdmittedTogether(t *testing.T) {
	eachStep(t, func(s step) string {
		if s.cost == 0 {
			return ""
		}
		// Single hits at the same time must give the same result.
		single, admitted := s.before.twin(), int64(0)
		for range s.cost {
			if single.call(s.now, 1).Allowed {
				admitted++
			}
		}
		switch {
		case s.got.Allowed != (admitted == s.cost):
			return fmt.Sprintf("one by one, %d were admitted", admitted)
		case s.got.Allowed && single.state() != s.after.state():
			return "one by one, they leave " + single.state()
		}
		if multi, ok := s.before.(*slideSubject); ok {
			return allOrNone(multi, s)
		}
		return ""
	})
}

// allOrNone compares the answer of several rules with the answers of single rules.
func allOrNone(s *slideSubject, st step) string {
	want := Decision{Allowed: true, Remaining: math.MaxInt64}
	for i := range s.rules {
		d := DecideAll(s.rules[i:i+1], s.log, st.now, st.cost)
		switch {
		case !d.Allowed && (want.Allowed || uint64(d.RetryAfter) > uint64(want.RetryAfter)):
			want = Decision{Limit: d.Limit, Remaining: d.Remaining, RetryAfter: d.RetryAfter, Index: i}
		case d.Allowed && want.Allowed && d.Remaining < want.Remaining:
			want = Decision{Allowed: true, Limit: d.Limit, Remaining: d.Remaining, Index: i}
		}
	}
	got := st.got
	if got.Allowed != want.Allowed || got.Limit != want.Limit || got.Remaining != want.Remaining ||
		got.Index != want.Index {
		return fmt.Sprintf("the single rules give %+v", want)
	}
	return ""
}

func TestRemainingAndResetAfterAreExact(t *testing.T) {
	eachStep(t, func(s step) string {
		d := s.got
		if want := s.before.limit(d.Index); d.Limit != want {
			return fmt.Sprint("limit should be ", want)
		}
		if want := s.after.left(s.now, d.Index); d.Remaining != want {
			return fmt.Sprint("remaining should be ", want)
		}
		if !s.after.unused(s.now + d.ResetAfter) {
			return "still in use at reset"
		}
		if d.ResetAfter > 0 && s.after.unused(s.now+d.ResetAfter-1) {
			return "unused before reset"
		}
		if peek := s.after.ask(s.now, 0); peek.ResetAfter != d.ResetAfter ||
			peek.Limit == d.Limit && peek.Remaining != d.Remaining && len(rulesOf(s.after)) < 2 {
			return fmt.Sprintf("a peek says %+v", peek)
		}
		if one := s.before.ask(s.now, 1); s.cost == 0 && (one.Allowed != d.Allowed || one.RetryAfter != d.RetryAfter) {
			return fmt.Sprintf("for a hit of 1 it is %+v", one)
		}
		return ""
	})
}

func rulesOf(s subject) []Window {
	if slide, ok := s.(*slideSubject); ok {
		return slide.rules
	}
	return nil
}
