package limit

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// A bucket that drains one call every 3.5 ms, with a queue of two.
func TestPaceDecidesAndDelays(t *testing.T) {
	b := Bucket{Capacity: 3, Refill: 2, Period: 7}
	var s Tokens
	for i, step := range []struct {
		at, cost, delay int64
		want            Decision
	}{
		{0, 0, 0, Decision{Allowed: true, Limit: 3, Remaining: 3}},
		{0, 1, 0, Decision{Allowed: true, Limit: 3, Remaining: 2, ResetAfter: 4}},
		{0, 1, 4, Decision{Allowed: true, Limit: 3, Remaining: 1, ResetAfter: 7}},
		{0, 2, 0, Decision{Limit: 3, Remaining: 1, RetryAfter: 4, ResetAfter: 7}},
		{0, 0, 7, Decision{Allowed: true, Limit: 3, Remaining: 1, ResetAfter: 7}},
		{1, 1, 6, Decision{Allowed: true, Limit: 3, ResetAfter: 10}},
		{1, 1, 0, Decision{Limit: 3, RetryAfter: 3, ResetAfter: 10}},
		{4, 1, 7, Decision{Allowed: true, Limit: 3, ResetAfter: 10}},
		{4, 4, 0, Decision{Limit: 3, RetryAfter: Never, ResetAfter: 10}},
		{14, 1, 0, Decision{Allowed: true, Limit: 3, Remaining: 2, ResetAfter: 4}},
	} {
		var d Decision
		var delay int64
		s, d = b.Pace(s, step.at, step.cost)
		delay, d.Delay = d.Delay, 0
		if d != step.want || delay != step.delay {
			t.Fatalf("step %d: got %+v and %d, want %+v and %d", i, d, delay, step.want, step.delay)
		}
	}
}

// The oracle is a queue: each admitted hit drains for period/refill ms, from its arrival or from
// when the hit before it has drained, whichever is later. A call waits until all hits before it
// have drained. The decisions equal those of the token bucket.
func TestLeakyIsAQueue(t *testing.T) {
	traces(t, 300, func(rnd *rand.Rand) {
		b := Bucket{between(rnd, 1, 6), between(rnd, 1, 6), between(rnd, 1, 60)}
		each := big.NewRat(b.Period, b.Refill)
		drained := new(big.Rat) // when the last hit of the queue has drained
		s, now := Tokens{}, epoch
		for i := range 100 {
			now += max(clockStep(rnd, 60), 0)
			cost, at := randomCost(rnd), new(big.Rat).SetInt64(now)
			if drained.Cmp(at) < 0 {
				drained.Set(at)
			}
			after, d := b.Pace(s, now, cost)
			delay := d.Delay
			d.Delay = 0
			if asToken, want := b.Take(s, now, cost); after != asToken || d != want {
				t.Errorf("call %d: %+v %+v, as a token bucket %+v %+v", i, after, d, asToken, want)
			}
			waiting := new(big.Rat).Quo(new(big.Rat).Sub(drained, at), each)
			if fits := waiting.Add(waiting,
				new(big.Rat).SetInt64(max(cost, 1))).Cmp(new(big.Rat).SetInt64(b.Capacity)) <= 0; fits != d.Allowed {
				t.Errorf("call %d at %d of cost %d on %+v: %+v, fits: %v", i, now, cost, b, d, fits)
			}
			want := int64(0)
			if d.Allowed {
				want = ceilRat(new(big.Rat).Sub(drained, at)).Int64()
				drained.Add(drained, new(big.Rat).Mul(each, new(big.Rat).SetInt64(cost)))
			}
			if delay != want {
				t.Errorf("call %d at %d of cost %d on %+v: delay %d, want %d", i, now, cost, b, delay, want)
			}
			s = after
		}
	})
}
