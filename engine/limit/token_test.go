package limit

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// bucketState returns the state of a bucket with missing tokens and earned units.
func bucketState(missing, earned, period, since int64) Tokens {
	fraction := new(big.Int).Lsh(big.NewInt(earned), 64)
	return Tokens{Missing: missing, Fraction: fraction.Quo(fraction, big.NewInt(period)).Uint64(), Since: since}
}

func TestTokenTakeDecides(t *testing.T) {
	b := Bucket{Capacity: 3, Refill: 2, Period: 7} // a token every 3.5 ms
	state := func(missing, earned, since int64) Tokens { return bucketState(missing, earned, b.Period, since) }
	steps := []struct {
		at, cost int64
		state    Tokens
		want     Decision
	}{
		{0, 0, Tokens{}, Decision{Allowed: true, Limit: 3, Remaining: 3}},
		{0, 4, Tokens{}, Decision{Limit: 3, Remaining: 3, RetryAfter: Never}},
		{0, 2, state(2, 0, 0), Decision{Allowed: true, Limit: 3, Remaining: 1, ResetAfter: 7}},
		{0, 2, state(2, 0, 0), Decision{Limit: 3, Remaining: 1, RetryAfter: 4, ResetAfter: 7}},
		{3, 2, state(2, 0, 0), Decision{Limit: 3, Remaining: 1, RetryAfter: 1, ResetAfter: 4}},
		{3, 0, state(2, 0, 0), Decision{Allowed: true, Limit: 3, Remaining: 1, ResetAfter: 4}},
		{4, 2, state(3, 1, 4), Decision{Allowed: true, Limit: 3, ResetAfter: 10}},
		{4, 0, state(3, 1, 4), Decision{Limit: 3, RetryAfter: 3, ResetAfter: 10}},
		{7, 1, state(3, 0, 7), Decision{Allowed: true, Limit: 3, ResetAfter: 11}},
		// the clock went back
		{5, 1, state(3, 0, 7), Decision{Limit: 3, RetryAfter: 6, ResetAfter: 13}},
		{17, 0, state(3, 0, 7), Decision{Allowed: true, Limit: 3, Remaining: 2, ResetAfter: 1}},
		{18, 0, state(3, 0, 7), Decision{Allowed: true, Limit: 3, Remaining: 3}},
		{18, 1, state(1, 0, 18), Decision{Allowed: true, Limit: 3, Remaining: 2, ResetAfter: 4}},
		{99, 1, state(1, 0, 99), Decision{Allowed: true, Limit: 3, Remaining: 2, ResetAfter: 4}},
	}
	var s Tokens
	for i, step := range steps {
		var d Decision
		s, d = b.Take(s, step.at, step.cost)
		if s != step.state || d != step.want {
			t.Fatalf("step %d: got %+v %+v, want %+v %+v", i, s, d, step.state, step.want)
		}
	}
}

func TestTokenTakeWithChangedRules(t *testing.T) {
	for _, c := range []struct {
		name  string
		rule  Bucket
		state Tokens
		now   int64
		cost  int64
		after Tokens
		want  Decision
	}{
		{"a higher capacity is available at once", Bucket{10, 1, 10}, Tokens{Missing: 3, Since: 100}, 100, 0,
			Tokens{Missing: 3, Since: 100}, Decision{Allowed: true, Limit: 10, Remaining: 7, ResetAfter: 30}},
		{"a lower capacity than missing tokens", Bucket{2, 1, 10}, bucketState(5, 5, 10, 100), 100, 0,
			bucketState(5, 5, 10, 100), Decision{Limit: 2, RetryAfter: 35, ResetAfter: 45}},
		{"a shorter period keeps the fraction", Bucket{5, 1, 10}, bucketState(5, 900, 1000, 100), 100, 0,
			bucketState(5, 900, 1000, 100), Decision{Limit: 5, RetryAfter: 1, ResetAfter: 41}},
		{"a shorter period rounds the fraction down", Bucket{5, 1, 10}, bucketState(5, 899, 1000, 100), 100, 0,
			bucketState(5, 899, 1000, 100), Decision{Limit: 5, RetryAfter: 2, ResetAfter: 42}},
		{"a longer period keeps the fraction", Bucket{5, 1, 1000}, bucketState(5, 9, 10, 100), 101, 0,
			bucketState(5, 9, 10, 100), Decision{Limit: 5, RetryAfter: 99, ResetAfter: 4099}},
		{"units of an unknown period are those of the rule", Bucket{5, 1, 1000},
			Tokens{Missing: 5, Earned: 9, Since: 100}, 101, 0,
			Tokens{Missing: 5, Earned: 9, Since: 100}, Decision{Limit: 5, RetryAfter: 990, ResetAfter: 4990}},
		{"such units complete no token", Bucket{5, 1, 10}, Tokens{Missing: 5, Earned: 900, Since: 100}, 100, 0,
			Tokens{Missing: 5, Earned: 900, Since: 100}, Decision{Limit: 5, RetryAfter: 1, ResetAfter: 41}},
		{"a wait that just fits an int64", Bucket{MaxCount, 1, MaxDuration},
			Tokens{Missing: 29_247_120, Since: epoch}, epoch, 0,
			Tokens{Missing: 29_247_120, Since: epoch},
			Decision{Allowed: true, Limit: MaxCount, Remaining: MaxCount - 29_247_120,
				ResetAfter: 29_247_120 * MaxDuration}},
		{"a wait that does not fit", Bucket{MaxCount, 1, MaxDuration},
			Tokens{Missing: 29_247_121, Since: epoch}, epoch, 0,
			Tokens{Missing: 29_247_121, Since: epoch},
			Decision{Allowed: true, Limit: MaxCount, Remaining: MaxCount - 29_247_121, ResetAfter: math.MaxInt64}},
		{"the time of a full bucket is ignored", Bucket{5, 1, 10}, Tokens{Missing: 0, Since: 900}, 100, 1,
			Tokens{Missing: 1, Since: 100}, Decision{Allowed: true, Limit: 5, Remaining: 4, ResetAfter: 10}},
		{"the refill since the last hit uses the new rule", Bucket{5, 2, 10}, Tokens{Missing: 5, Since: 100}, 110, 1,
			Tokens{Missing: 4, Since: 110}, Decision{Allowed: true, Limit: 5, Remaining: 1, ResetAfter: 20}},
	} {
		s, d := c.rule.Take(c.state, c.now, c.cost)
		if s != c.after || d != c.want {
			t.Errorf("%s: got %+v %+v, want %+v %+v", c.name, s, d, c.after, c.want)
		}
	}
}

// A bucket that is full again is like one that was never used.
func TestTokenFullIsUnused(t *testing.T) {
	traces(t, 2000, func(rnd *rand.Rand) {
		b := Bucket{between(rnd, 1, 9), between(rnd, 1, 9), between(rnd, 1, 99)}
		used, d := b.Take(Tokens{}, epoch, between(rnd, 1, b.Capacity))
		cost := between(rnd, 1, b.Capacity)
		now := epoch + d.ResetAfter + between(rnd, 0, 3)
		s, d := b.Take(used, now, cost)
		if fresh, want := b.Take(Tokens{}, now, cost); s != fresh || d != want {
			t.Errorf("%+v after %+v: %+v %+v, a new one: %+v %+v", b, used, s, d, fresh, want)
		}
	})
}

// rational is a token bucket in exact fractions: the missing tokens at since. They do not depend on
// the rule.
type rational struct {
	missing *big.Rat
	since   int64
}

// at returns the missing tokens at now under rule b.
func (o rational) at(b Bucket, now int64) *big.Rat {
	missing := new(big.Rat).Set(o.missing)
	if now > o.since {
		back := new(big.Rat).SetFrac(big.NewInt(b.Refill), big.NewInt(b.Period))
		missing.Sub(missing, back.Mul(back, new(big.Rat).SetInt64(now-o.since)))
	}
	if missing.Sign() < 0 {
		missing.SetInt64(0)
	}
	return missing
}

// take is Bucket.Take in fractions.
func (o *rational) take(b Bucket, now, cost int64) Decision {
	missing := o.at(b, now)
	need := new(big.Rat).SetInt64(max(cost, 1))
	free := new(big.Rat).Sub(new(big.Rat).SetInt64(b.Capacity), missing)
	d := Decision{Limit: b.Capacity, Allowed: free.Cmp(need) >= 0}
	switch {
	case max(cost, 1) > b.Capacity:
		d.RetryAfter = Never
	case !d.Allowed:
		d.RetryAfter = o.wait(b, new(big.Rat).Sub(need, free), now)
	case cost > 0:
		missing.Add(missing, need)
		free.Sub(free, need)
		*o = rational{missing, max(now, o.since)}
	}
	if free.Sign() > 0 {
		d.Remaining = new(big.Int).Quo(free.Num(), free.Denom()).Int64()
	}
	if missing.Sign() > 0 {
		d.ResetAfter = o.wait(b, missing, now)
	}
	return d
}

func (o *rational) wait(b Bucket, tokens *big.Rat, now int64) int64 {
	perToken := new(big.Rat).SetFrac(big.NewInt(b.Period), big.NewInt(b.Refill))
	wait := ceilRat(perToken.Mul(perToken, tokens))
	wait.Add(wait, big.NewInt(max(o.since-now, 0)))
	if !wait.IsInt64() {
		return math.MaxInt64
	}
	return wait.Int64()
}

func ceilRat(r *big.Rat) *big.Int {
	up := new(big.Int).Add(r.Num(), new(big.Int).Sub(r.Denom(), big.NewInt(1)))
	return up.Div(up, r.Denom()) // Euclidean, so this is the floor also below 0
}

func TestTokenMatchesRationals(t *testing.T) {
	traces(t, 400, func(rnd *rand.Rand) {
		// All rules have one period: a change of it may lose 2^-64 of a token.
		period := between(rnd, 1, 60)
		rule := func() Bucket { return Bucket{between(rnd, 1, 8), between(rnd, 1, 8), period} }
		b, now := rule(), epoch
		s, o := Tokens{}, rational{new(big.Rat), 0}
		for i := range 100 {
			now += clockStep(rnd, 60)
			if rnd.IntN(10) == 0 {
				b = rule()
			}
			cost, before := randomCost(rnd), s
			var got Decision
			s, got = b.Take(s, now, cost)
			if want := o.take(b, now, cost); got != want {
				t.Errorf("call %d: %+v of %+v at %d, cost %d: got %+v, want %+v", i, b, before, now, cost, got, want)
				return
			}
		}
	})
}

// With alternating rules, no call is admitted that exact fractions would deny, and no call is
// denied, or waits longer, that would be admitted with a millionth of a token less.
func TestTokenOfChangingPeriodsMatchesRationals(t *testing.T) {
	traces(t, 600, func(rnd *rand.Rand) {
		longest := []int64{60, 5000, dayMs, 40 * dayMs}[rnd.IntN(4)]
		rules := make([]Bucket, between(rnd, 2, 4))
		for i := range rules {
			rules[i] = Bucket{between(rnd, 1, 8), between(rnd, 1, 8), between(rnd, 1, longest)}
		}
		now, s, o := epoch, Tokens{}, rational{new(big.Rat), 0}
		for i := range 200 {
			now += clockStep(rnd, longest)
			b, cost, before := rules[rnd.IntN(len(rules))], randomCost(rnd), s
			var got Decision
			s, got = b.Take(s, now, cost)
			exact, tight := o, o
			most := exact.take(b, now, cost)
			tight.missing = new(big.Rat).Add(o.missing, big.NewRat(1, 1_000_000))
			least := tight.take(b, now, cost)
			if !within(got, most, least) {
				t.Errorf(
					"call %d: %+v of %+v at %d, cost %d: got %+v, want from %+v to %+v",
					i,
					b,
					before,
					now,
					cost,
					got,
					most,
					least,
				)
				return
			}
			if got.Allowed && cost > 0 {
				o = exact
			}
		}
	})
}

// within reports whether an answer admits no more than most, and no less than least.
func within(d, most, least Decision) bool {
	switch {
	case d.Allowed && !most.Allowed, least.Allowed && !d.Allowed:
		return false
	case d.Allowed != most.Allowed || d.Allowed != least.Allowed:
		// their times are about different states
		return true
	}
	return uint64(d.RetryAfter) >= uint64(most.RetryAfter) && uint64(d.RetryAfter) <= uint64(least.RetryAfter) &&
		d.ResetAfter >= most.ResetAfter && d.ResetAfter <= least.ResetAfter
}

// Two rules with equal rates are one limit, even if calls alternate between them.
func TestTokenOfEqualRatesIsOneLimit(t *testing.T) {
	for _, rules := range [][2]Bucket{
		{{10, 10, 1000}, {10, 1, 100}},
		{{3, 7000, 600_000}, {3, 7, 600}},
		{{2, 5, 31 * dayMs}, {2, 10, 62 * dayMs}},
	} {
		rnd := rand.New(rand.NewPCG(1, 2))
		one, turns, now := Tokens{}, Tokens{}, epoch
		for i := range 2000 {
			now += between(rnd, 0, 2*rules[0].Period/rules[0].Refill)
			var want, got Decision
			one, want = rules[0].Take(one, now, 1)
			if turns, got = rules[i%2].Take(turns, now, 1); got != want {
				t.Fatalf("%+v, call %d: got %+v, with the first rule only %+v", rules, i, got, want)
			}
		}
	}
}

// extreme returns a random number from 1 to most, often close to a bound.
func extreme(rnd *rand.Rand, most int64) int64 {
	switch rnd.IntN(5) {
	case 0:
		return 1
	case 1:
		return most
	case 2:
		return most - between(rnd, 0, min(most-1, 3))
	}
	return max(1, between(rnd, 1, most)>>rnd.IntN(50))
}

const year9999 = 253402300799999

func TestTokenAtTheExtremes(t *testing.T) {
	traces(t, 3000, func(rnd *rand.Rand) {
		b := Bucket{extreme(rnd, MaxCount), extreme(rnd, MaxCount), extreme(rnd, MaxDuration)}
		s, o := Tokens{}, rational{new(big.Rat), 0}
		for range 8 {
			now, cost, before := extreme(rnd, year9999), extreme(rnd, MaxCount), s
			if rnd.IntN(3) == 0 {
				cost = min(cost, b.Capacity)
			}
			var got Decision
			s, got = b.Take(s, now, cost)
			if want := o.take(b, now, cost); got != want {
				t.Errorf("%+v of %+v at %d, cost %d: got %+v, want %+v", b, before, now, cost, got, want)
			}
			if s.Missing < 0 || s.Missing > b.Capacity || s.Earned != 0 {
				t.Errorf("%+v of %+v at %d, cost %d: left %+v", b, before, now, cost, s)
			}
		}
	})
}

// The oracle is the generic cell rate algorithm of ITU-T I.371 (virtual scheduling), in fractions:
// it keeps the theoretical arrival time of the next cell.
func TestTokenIsTheGenericCellRateAlgorithm(t *testing.T) {
	traces(t, 300, func(rnd *rand.Rand) {
		b := Bucket{between(rnd, 1, 8), between(rnd, 1, 8), between(rnd, 1, 60)}
		increment := big.NewRat(b.Period, b.Refill)
		depth := new(big.Rat).Mul(increment, new(big.Rat).SetInt64(b.Capacity))
		arrival, s, now := new(big.Rat), Tokens{}, epoch
		for range 100 {
			now += max(clockStep(rnd, 60), 0)
			cost := between(rnd, 1, 3)
			at := new(big.Rat).SetInt64(now)
			next := new(big.Rat).Set(arrival)
			if next.Cmp(at) < 0 {
				next.Set(at)
			}
			next.Add(next, new(big.Rat).Mul(increment, new(big.Rat).SetInt64(cost)))
			conforms := new(big.Rat).Sub(next, at).Cmp(depth) <= 0
			if conforms {
				arrival = next
			}
			var d Decision
			if s, d = b.Take(s, now, cost); d.Allowed != conforms {
				t.Errorf("%+v at %d, cost %d: %+v, conforms: %v", b, now, cost, d, conforms)
				return
			}
		}
	})
}

// A caller that always retries exactly after RetryAfter gets exactly the rate of the rule, over a
// year and at every call in between. (The capacity is above 1: a bucket of one token that is full a
// fraction of a millisecond before a call loses that fraction by definition.)
func TestTokenDoesNotDriftInAYear(t *testing.T) {
	for _, b := range []Bucket{
		{Capacity: 10, Refill: 7, Period: 600_000},         // every 85714 2/7 ms
		{Capacity: 2, Refill: 100_003, Period: 30 * dayMs}, // every 25919.2... ms
		{Capacity: 3, Refill: 3, Period: 7 * hourMs},
	} {
		s, now, admitted := Tokens{}, epoch, int64(0)
		for now < epoch+365*dayMs {
			var d Decision
			if s, d = b.Take(s, now, 1); !d.Allowed {
				now += d.RetryAfter
				continue
			}
			admitted++
			if due := b.Capacity + (now-epoch)*b.Refill/b.Period; admitted > due || admitted < due-d.Remaining {
				t.Fatalf(
					"%+v: %d admitted after %d ms, due: %d, remaining: %d",
					b,
					admitted,
					now-epoch,
					due,
					d.Remaining,
				)
			}
		}
		_, d := b.Take(s, now, 0)
		if due := b.Capacity + (now-epoch)*b.Refill/b.Period; admitted+d.Remaining != due {
			t.Errorf("%+v: %d admitted in a year and %d left, due: %d", b, admitted, d.Remaining, due)
		}
	}
}

func FuzzToken(f *testing.F) {
	f.Add(int64(3), int64(2), int64(7), int64(2), int64(1), int64(0), int64(4), int64(1))
	f.Add(
		int64(MaxCount),
		int64(MaxCount),
		int64(MaxDuration),
		int64(MaxCount),
		int64(0),
		int64(0),
		int64(year9999),
		int64(MaxCount),
	)
	f.Fuzz(func(t *testing.T, capacity, refill, period, missing, earned, since, now, cost int64) {
		within := func(n, lo, hi int64) int64 { return lo + int64(uint64(n)%uint64(hi-lo+1)) }
		b := Bucket{within(capacity, 1, MaxCount), within(refill, 1, MaxCount), within(period, 1, MaxDuration)}
		s, units := Tokens{Since: within(since, 0, year9999)}, within(earned, 0, b.Period-1)
		if n := within(missing, 0, MaxCount); n > 0 {
			s = bucketState(n, units, b.Period, s.Since)
		} else {
			units = 0
		}
		now, cost = within(now, 0, year9999), within(cost, 0, MaxCount)
		owed := new(big.Rat).SetFrac(big.NewInt(units), big.NewInt(b.Period))
		if s.Missing == 0 {
			s.Since = 0 // the time of a full bucket is ignored
		}
		o := rational{owed.Sub(new(big.Rat).SetInt64(s.Missing), owed), s.Since}
		after, got := b.Take(s, now, cost)
		if want := o.take(b, now, cost); got != want {
			t.Errorf("%+v of %+v at %d, cost %d: got %+v, want %+v", b, s, now, cost, got, want)
		}
		if (!got.Allowed || cost == 0) && after != s {
			t.Errorf("%+v of %+v at %d, cost %d: left %+v", b, s, now, cost, after)
		}
	})
}
