package limit

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

func TestRefundReturnsUsedHits(t *testing.T) {
	const ninth, nearlyOne = 1 << 64 / 9, 1<<64 - 2
	for _, step := range []struct {
		state Tokens
		n     int64
		after Tokens
		back  int64
	}{
		{Tokens{}, 1, Tokens{}, 0},
		{Tokens{Missing: 5, Fraction: 3, Since: 100}, 1, Tokens{Missing: 4, Fraction: 3, Since: 100}, 1},
		{Tokens{Missing: 5, Since: 100}, 5, Tokens{}, 5},
		{Tokens{Missing: 5, Since: 100}, MaxCount, Tokens{}, 5},
		// 17/9 tokens are missing
		{Tokens{2, ninth, 100, 0}, 2, Tokens{1, ninth, 100, 0}, 1},
		{Tokens{2, 0, 100, 1}, 2, Tokens{1, 0, 100, 1}, 1},
		// 2^-63 of a token is missing
		{Tokens{1, nearlyOne, 100, 0}, 1, Tokens{1, nearlyOne, 100, 0}, 0},
	} {
		if after, back := step.state.Refund(step.n); after != step.after || back != step.back {
			t.Errorf("%d to %+v: %+v %d, want %+v %d", step.n, step.state, after, back, step.after, step.back)
		}
	}
	for _, step := range []struct {
		state Count
		n     int64
		after Count
		back  int64
	}{
		{Count{}, 1, Count{}, 0},
		{Count{100, 10, 5}, 2, Count{100, 10, 3}, 2},
		{Count{100, 10, 5}, 5, Count{}, 5},
		{Count{100, 10, 5}, MaxCount, Count{}, 5},
		{Count{95, 10, 5}, 5, Count{}, 5},
		{Count{94, 10, 5}, 5, Count{94, 10, 5}, 0}, // it has ended
		{Count{50, 0, 5}, 5, Count{}, 5},
	} {
		if after, back := step.state.Refund(104, step.n); after != step.after || back != step.back {
			t.Errorf("%d to %+v: %+v %d, want %+v %d", step.n, step.state, after, back, step.after, step.back)
		}
	}
}

// Refunds at any time reduce the missing tokens by exactly the refunded number.
func TestRefundedTokensMatchRationals(t *testing.T) {
	traces(t, 300, func(rnd *rand.Rand) {
		b := Bucket{between(rnd, 1, 8), between(rnd, 1, 8), between(rnd, 1, 60)}
		s, o, now := Tokens{}, rational{new(big.Rat), 0}, epoch
		for i := range 100 {
			now += clockStep(rnd, 60)
			if rnd.IntN(3) == 0 {
				n, whole := between(rnd, 1, 4), s.Missing
				if s.Fraction > 0 {
					whole--
				}
				var back int64
				if s, back = s.Refund(n); back != min(n, whole) {
					t.Errorf("%d of %d were refunded, and %d whole tokens were missing", back, n, whole)
				}
				o.missing.Sub(o.missing, new(big.Rat).SetInt64(back))
				if o.missing.Sign() <= 0 {
					o = rational{new(big.Rat), 0}
				}
			}
			cost := randomCost(rnd)
			var got Decision
			s, got = b.Take(s, now, cost)
			if want := o.take(b, now, cost); got != want {
				t.Errorf("call %d: %+v at %d, cost %d: got %+v, want %+v", i, b, now, cost, got, want)
				return
			}
		}
	})
}
