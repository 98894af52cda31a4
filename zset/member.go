package zset

import "math"

// maxName is the greatest score that a member can name: float64 can represent the integers beyond
// it, and a scan's cursor can hold it.
const maxName = 1 << 52

// named returns the number that a member begins with: decimal digits up to
// the end or the first other byte, without leading zeros, at most maxName.
// "17", "17-2" and "0:x" name a number; "017", "-17", "x" and "" do not.
func named(member []byte) (n uint64, ok bool) {
	const maxDigits = 16
	if len(member) == 0 || member[0]-'0' > 9 {
		return 0, false
	}
	n = uint64(member[0] - '0')
	for i := 1; i < len(member) && member[i]-'0' <= 9; i++ {
		if i == maxDigits || n == 0 {
			return 0, false
		}
		n = n*10 + uint64(member[i]-'0')
	}
	return n, n <= maxName
}

// selfScored reports whether the member names this score exactly: 0 and -0 differ.
func selfScored(member []byte, score float64) bool {
	n, ok := named(member)
	return ok && math.Float64bits(float64(n)) == math.Float64bits(score)
}
