package limit

import (
	"math"
	"math/bits"
	"strconv"
)

// MaxDuration is the longest window or period: ten years of 365 days, in ms.
const MaxDuration = 10 * 365 * dayMs

// ParseDuration reads a duration and returns it in milliseconds, 1 to MaxDuration:
//
//	duration = digits [ "." digits ] [ "ms" | "s" | "m" | "h" | "d" | "w" ]
//
// A bare number is seconds. What is not a whole number of milliseconds is no duration. The
// arithmetic is decimal and exact for any number of digits.
func ParseDuration(b []byte) (ms int64, ok bool) {
	whole, b := digits(b)
	if len(whole) == 0 {
		return 0, false
	}
	var fraction []byte
	if len(b) > 0 && b[0] == '.' {
		if fraction, b = digits(b[1:]); len(fraction) == 0 {
			return 0, false
		}
	}
	unit := unitMs(b)
	if unit == 0 {
		return 0, false
	}
	var n uint64
	for _, c := range whole {
		if n = n*10 + uint64(c-'0'); n > MaxDuration {
			return 0, false
		}
	}
	high, product := bits.Mul64(n, uint64(unit))
	if high != 0 || product > MaxDuration {
		return 0, false
	}
	part, rest := scale(fraction, unit)
	if ms = int64(product) + part; rest || ms < 1 || ms > MaxDuration {
		return 0, false
	}
	return ms, true
}

// digits splits b after its leading decimal digits.
func digits(b []byte) (number, rest []byte) {
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	return b[:n], b[n:]
}

func unitMs(name []byte) int64 {
	switch string(name) {
	case "ms":
		return 1
	case "", "s":
		return 1000
	case "m":
		return minuteMs
	case "h":
		return hourMs
	case "d":
		return dayMs
	case "w":
		return 7 * dayMs
	}
	return 0
}

// scale returns 0.fraction times unit, rounded down, and whether there is a rest. It works from the
// last digit to the first, like long division.
func scale(fraction []byte, unit int64) (n int64, rest bool) {
	var cut int64
	for i := len(fraction) - 1; i >= 0; i-- {
		n += int64(fraction[i]-'0') * unit
		cut |= n % 10
		n /= 10
	}
	return n, cut != 0
}

// ParseCalendar reads the name of a calendar unit, in any case.
func ParseCalendar(b []byte) (Unit, bool) {
	for unit := Minute; unit <= Year; unit++ {
		if equalFold(b, unitNames[unit]) {
			return unit, true
		}
	}
	return 0, false
}

// equalFold reports whether b equals name in any case; name consists of the letters a to z.
func equalFold(b []byte, name string) bool {
	if len(b) != len(name) {
		return false
	}
	for i, c := range b {
		if c|0x20 != name[i] {
			return false
		}
	}
	return true
}

// DurationText returns a duration of ms milliseconds, at least 1, as ParseDuration reads it, in the
// largest unit up to days of which it is a multiple.
func DurationText(ms int64) string { return string(AppendDuration(nil, ms)) }

// AppendDuration appends what DurationText returns.
func AppendDuration(b []byte, ms int64) []byte {
	unit := "ms"
	for _, name := range [...]string{"s", "m", "h", "d"} {
		length := unitMs([]byte(name))
		if ms%length != 0 {
			break
		}
		unit = name
	}
	return append(strconv.AppendInt(b, ms/unitMs([]byte(unit)), 10), unit...)
}

// After returns now + ms, saturated at math.MaxInt64.
func After(now, ms int64) int64 {
	if ms > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + ms
}
