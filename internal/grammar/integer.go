package grammar

import (
	"math"
)

// ParseInt parses a signed 64-bit integer in Redis' only spelling: decimal digits, and a minus sign
// where needed. A plus sign, leading zeros, "-0", spaces, the empty string and numbers beyond int64
// are errors.
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
	var n uint64 // 19 digits do not overflow
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

// AddInt returns a+b. ok is false if the sum overflows.
func AddInt(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, (sum >= a) == (b >= 0)
}
