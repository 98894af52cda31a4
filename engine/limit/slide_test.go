package limit

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSlideDecides(t *testing.T) {
	rule := []Window{{Limit: 3, Length: 10}}
	steps := []struct {
		at, cost int64
		want     Decision
	}{
		{100, 0, Decision{Allowed: true, Limit: 3, Remaining: 3}},
		{100, 4, Decision{Limit: 3, Remaining: 3, RetryAfter: Never}},
		{100, 1, Decision{Allowed: true, Limit: 3, Remaining: 2, ResetAfter: 10}},
		{104, 2, Decision{Allowed: true, Limit: 3, Remaining: 0, ResetAfter: 10}},
		{104, 0, Decision{Limit: 3, RetryAfter: 6, ResetAfter: 10}},
		{109, 1, Decision{Limit: 3, RetryAfter: 1, ResetAfter: 5}},
		{109, 2, Decision{Limit: 3, RetryAfter: 5, ResetAfter: 5}},
		{109, 3, Decision{Limit: 3, RetryAfter: 5, ResetAfter: 5}},
		{109, 4, Decision{Limit: 3, RetryAfter: Never, ResetAfter: 5}},
		{110, 0, Decision{Allowed: true, Limit: 3, Remaining: 1, ResetAfter: 4}},
		{110, 1, Decision{Allowed: true, Limit: 3, Remaining: 0, ResetAfter: 10}},
		{114, 3, Decision{Limit: 3, Remaining: 2, RetryAfter: 6, ResetAfter: 6}},
		{120, 0, Decision{Allowed: true, Limit: 3, Remaining: 3}},
	}
	log := logOf()
	for i, step := range steps {
		d := DecideAll(rule, log, step.at, step.cost)
		if d != step.want {
			t.Fatalf("step %d: got %+v, want %+v", i, d, step.want)
		}
		if d.Allowed {
			log.add(float64(step.at), step.cost)
		}
	}
}

func TestSlideOverLogWrittenByClients(t *testing.T) {
	inf := math.Inf(1)
	rule := []Window{{Limit: 2, Length: 10}}
	for _, c := range []struct {
		why       string
		log       *sliceLog
		now, cost int64
		want      Decision
	}{
		{"a fraction counts from the next ms", logOf(100.5, 100.5), 100, 1,
			Decision{Allowed: true, Limit: 2, Remaining: 1, ResetAfter: 11}},
		{"a fraction counts as long", logOf(100.5, 100.5), 110, 1, Decision{Limit: 2, RetryAfter: 1, ResetAfter: 1}},
		{"and no longer than others", logOf(100.5, 100.5), 111, 0, Decision{Allowed: true, Limit: 2, Remaining: 2}},
		{"a future hit does not count yet", logOf(105, 106), 100, 2, Decision{Allowed: true, Limit: 2, ResetAfter: 16}},
		{"a future hit enters before others lapse", logOf(99, 100, 105), 100, 2,
			Decision{Limit: 2, RetryAfter: 15, ResetAfter: 15}},
		{"others lapse before a future hit enters", logOf(99, 100, 120), 100, 2,
			Decision{Limit: 2, RetryAfter: 10, ResetAfter: 30}},
		{"future hits enter when others lapse", logOf(99, 99, 109, 109), 100, 1,
			Decision{Limit: 2, RetryAfter: 19, ResetAfter: 19}},
		{"more hits than the limit, now and in the future", logOf(98, 98, 99, 99, 100, 104, 108), 100, 1,
			Decision{Limit: 2, RetryAfter: 14, ResetAfter: 18}},
		{"it never enters", logOf(99, 100, inf), 100, 2, Decision{Limit: 2, RetryAfter: 10, ResetAfter: math.MaxInt64}},
		{"a hit at minus infinity", logOf(math.Inf(-1)), 100, 1,
			Decision{Allowed: true, Limit: 2, Remaining: 1, ResetAfter: 10}},
		{"times in nanoseconds", logOf(1.7e18, 1.7e18), 1700000000000, 1,
			Decision{Allowed: true, Limit: 2, Remaining: 1, ResetAfter: 1700000000000000000 + 10 - 1700000000000}},
		{"far beyond an int64", logOf(1e300), 100, 0,
			Decision{Allowed: true, Limit: 2, Remaining: 2, ResetAfter: math.MaxInt64}},
		{"over the limit already", logOf(100, 100, 100), 100, 1, Decision{Limit: 2, RetryAfter: 10, ResetAfter: 10}},
	} {
		if d := DecideAll(rule, c.log, c.now, c.cost); d != c.want {
			t.Errorf("%s: got %+v, want %+v", c.why, d, c.want)
		}
	}
}

// For times that doubles cannot represent in milliseconds, waits saturate, and the search ends.
func TestSlideSaturatesBeyondExactDoubles(t *testing.T) {
	rule := []Window{{Limit: 1, Length: MaxDuration}}
	log := logOf()
	for at := float64(MaxCount) - 3*MaxDuration; at < 1<<54; at += MaxDuration / 2 {
		log.add(at, 1)
	}
	now := int64(log.times[0])
	if d := DecideAll(rule, log, now, 1); d.Allowed || d.RetryAfter != math.MaxInt64 {
		t.Errorf("got %+v", d)
	}
}

func TestSlideAtTheExtremes(t *testing.T) {
	traces(t, 3000, func(rnd *rand.Rand) {
		rule, log := []Window{{extreme(rnd, MaxCount), extreme(rnd, MaxDuration)}}, logOf()
		for range 8 {
			now, cost := extreme(rnd, year9999), extreme(rnd, MaxCount)
			d := DecideAll(rule, log, now, cost)
			if (d.RetryAfter == 0) != d.Allowed || (d.RetryAfter == Never) != (cost > rule[0].Limit) ||
				d.Remaining < 0 ||
				d.Remaining > rule[0].Limit ||
				d.ResetAfter < 0 {
				t.Errorf("%+v at %d, cost %d: %+v", rule, now, cost, d)
			}
			log.add(float64(now)+rnd.Float64(), between(rnd, 0, 3))
		}
	})
}

// DecideAll makes as many lookups in the log as its comment says.
func TestSlideLooksUpFewHits(t *testing.T) {
	rule := []Window{{Limit: 3, Length: 10}}
	for _, c := range []struct {
		why           string
		cost          int64
		asked, looked int
	}{
		{"admitted", 1, 2, 0}, {"peek", 0, 2, 1}, {"denied", 2, 2, 2}, {"never", 9, 2, 1},
	} {
		log := logOf(80, 101, 102)
		log.asked = 0
		DecideAll(rule, log, 105, c.cost)
		if log.asked != c.asked || log.looked != c.looked {
			t.Errorf("%s: %d ranks and %d times, want %d and %d", c.why, log.asked, log.looked, c.asked, c.looked)
		}
	}
}

func TestRepeatedAllReportsRemaining(t *testing.T) {
	for _, c := range []struct {
		why  string
		log  *sliceLog
		want Decision
	}{
		{"below the limit", logOf(93, 95), Decision{Allowed: true, Free: true, Limit: 3, Remaining: 1, ResetAfter: 5}},
		{"at the limit", logOf(93, 95, 100), Decision{Allowed: true, Free: true, Limit: 3, ResetAfter: 10}},
		{"over the limit", logOf(93, 95, 96, 99), Decision{Allowed: true, Free: true, Limit: 3, ResetAfter: 9}},
		{"with lapsed and future hits", logOf(90, 95, 107.5),
			Decision{Allowed: true, Free: true, Limit: 3, Remaining: 2, ResetAfter: 18}},
	} {
		if d := RepeatedAll([]Window{{3, 10}}, c.log, 100); d != c.want {
			t.Errorf("%s: got %+v, want %+v", c.why, d, c.want)
		}
		c.want.Index = 1
		if d := RepeatedAll([]Window{{9, 10}, {3, 10}, {3, 10}}, c.log, 100); d != c.want {
			t.Errorf("%s, of several: got %+v, want %+v", c.why, d, c.want)
		}
	}
	// The answer may be about a short window, but ResetAfter is that of the longest.
	if d := RepeatedAll([]Window{{100, 50}, {3, 10}}, logOf(99),
		100); d != (Decision{Allowed: true, Free: true, Limit: 3, Remaining: 2, ResetAfter: 49, Index: 1}) {
		t.Errorf("got %+v", d)
	}
}
