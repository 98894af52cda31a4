package zset

import "math"

// maxName is the greatest score that a member can name: float64 can represent the integers beyond
// it, and a scan's cursor can hold it.
const maxName = 1 << 52

// named returns the number that a member begins with: decimal digits up to
// the end or the first other byte, without leading zeros, at most maxName.
// "17", "17-2" and "0:x" name a number; "017", "-17", "x" and "" do not.
func named(member []byte) (n uint64, ok bool) {
	n, digits := number(member)
	return n, digits > 0 && n <= maxName
}

// number returns the decimal number that a text begins with, and how many digits it has; none if it
// has leading zeros or more than 16 digits.
func number(text []byte) (n uint64, digits int) {
	const maxDigits = 16
	if len(text) == 0 || text[0]-'0' > 9 {
		return 0, 0
	}
	n = uint64(text[0] - '0')
	i := 1
	for ; i < len(text) && text[i]-'0' <= 9; i++ {
		if i == maxDigits || n == 0 {
			return 0, 0
		}
		n = n*10 + uint64(text[i]-'0')
	}
	return n, i
}

// selfScored reports whether the member names this score exactly: 0 and -0 differ.
func selfScored(member []byte, score float64) bool {
	n, ok := named(member)
	return ok && math.Float64bits(float64(n)) == math.Float64bits(score)
}
