package grammar

import (
	"math"
)

// ParseInt reads a signed 64-bit integer as Redis writes one: decimal digits,
// a minus where needed, and nothing else. There is one way to write each
// number, so a plus, leading zeros, "-0", spaces and the empty string are all
// refused, as is a number beyond int64.
func ParseInt(b []byte) (int64, bool) {
	digits := b
	negative := len(b) > 1 && b[0] == '-'
	if negative {
		digits = b[1:]
	}
	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}
	if digits[0] == '0' {
		return 0, len(b) == 1
	}
	var n uint64 // 19 digits cannot overflow it
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	if negative {
		return -int64(n), n <= -math.MinInt64
	}
	return int64(n), n <= math.MaxInt64
}

// AddInt returns a+b. ok is false if that overflows 64 bits.
func AddInt(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, (sum >= a) == (b >= 0)
}
