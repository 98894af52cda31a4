package limit

import (
	"math"
	"testing"
)

// These numbers are part of the public contract.
func TestContractConstants(t *testing.T) {
	if MaxCount != 9_007_199_254_740_991 || MaxDuration != 315_360_000_000 || Never != -1 {
		t.Errorf("MaxCount %d, MaxDuration %d, Never %d", int64(MaxCount), int64(MaxDuration), Never)
	}
}

func TestTimeArithmeticSaturates(t *testing.T) {
	for _, c := range []struct{ t, now, want int64 }{
		{5, 3, 2}, {3, 5, 0}, {4, 4, 0}, {-3, -5, 2},
		{math.MaxInt64, 5, math.MaxInt64}, {math.MaxInt64 - 1, 5, math.MaxInt64 - 6},
		{math.MaxInt64 - 1, -5, math.MaxInt64}, {math.MinInt64, 5, 0}, {5, math.MinInt64, math.MaxInt64},
	} {
		if got := until(c.t, c.now); got != c.want {
			t.Errorf("until %d from %d: got %d, want %d", c.t, c.now, got, c.want)
		}
	}
	for _, c := range []struct{ t, d, want int64 }{
		{5, 3, 8}, {-5, 3, -2}, {math.MaxInt64 - 3, 2, math.MaxInt64 - 1}, {math.MaxInt64 - 3, 9, math.MaxInt64},
		{math.MinInt64, math.MaxInt64, -1},
	} {
		if got := later(c.t, c.d); got != c.want {
			t.Errorf("%d later than %d: got %d, want %d", c.d, c.t, got, c.want)
		}
	}
}
