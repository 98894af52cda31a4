// Package number reads and writes the numbers of scripts, as C does for Redis.
package number

import (
	"math"
	"strconv"
	"strings"
)

// Append appends a number as C's %.<digits>g does: 14 digits in scripts, 17 to commands.
func Append(b []byte, f float64, digits int) []byte {
	if f == math.Trunc(f) && math.Abs(f) < 1e14 && (f != 0 || !math.Signbit(f)) {
		return strconv.AppendInt(b, int64(f), 10)
	}
	switch {
	case math.IsNaN(f):
		if math.Signbit(f) {
			return append(b, "-nan"...)
		}
		return append(b, "nan"...)
	case math.IsInf(f, 1):
		return append(b, "inf"...)
	case math.IsInf(f, -1):
		return append(b, "-inf"...)
	}
	return strconv.AppendFloat(b, f, 'g', digits, 64)
}

// Text returns a number as tostring does.
func Text(f float64) string {
	var buf [32]byte
	return string(Append(buf[:0], f, 14))
}

const spaces = " \f\n\r\t\v"

// Parse returns the number that a text is, as C's strtod reads it: decimal or hexadecimal,
// inf or nan, with space around it.
func Parse(text string) (f float64, ok bool) {
	if f, ok = parseDigits(text); ok {
		return f, true
	}
	text, _, _ = strings.Cut(text, "\x00") // where C's texts end
	text = strings.Trim(text, spaces)
	if text == "" || strings.IndexByte(text, '_') >= 0 {
		return 0, false
	}
	digits := strings.TrimLeft(text, "+-")
	if len(text)-len(digits) > 1 {
		return 0, false
	}
	if len(digits) > 1 && (digits[1] == 'x' || digits[1] == 'X') && !strings.ContainsAny(digits, "pP") {
		text += "p0"
	}
	if len(digits) > 3 && strings.EqualFold(digits[:3], "nan") {
		return 0, false
	}
	if strings.EqualFold(digits, "nan") { // Go refuses its sign
		f = math.NaN()
		if text[0] == '-' {
			f = math.Copysign(f, -1)
		}
		return f, true
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && err.(*strconv.NumError).Err != strconv.ErrRange {
		return 0, false
	}
	return f, true
}

// parseDigits is Parse for a few digits, which most numbers are.
func parseDigits(text string) (f float64, ok bool) {
	if text == "" || len(text) > 15 {
		return 0, false
	}
	n := int64(0)
	for i := range len(text) {
		if !IsDigit(text[i]) {
			return 0, false
		}
		n = n*10 + int64(text[i]-'0')
	}
	return float64(n), true
}

// ParseInteger reads an unsigned integer of a base from 2 to 36, as strtoul does.
func ParseInteger(text string, base int) (f float64, ok bool) {
	text, _, _ = strings.Cut(text, "\x00")
	text = strings.Trim(text, spaces)
	negative := false
	if text != "" && (text[0] == '-' || text[0] == '+') {
		negative, text = text[0] == '-', text[1:]
	}
	if base == 16 && len(text) > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X') {
		text = text[2:]
	}
	for i := range len(text) { // also behind those that are too many
		if _, err := strconv.ParseUint(text[i:i+1], base, 64); err != nil {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(text, base, 64)
	if err != nil {
		if text == "" {
			return 0, false
		}
		n = math.MaxUint64
	}
	if negative {
		n = -n
	}
	return float64(n), true
}

// Int64 converts a number as C does on amd64: what does not fit is the smallest integer.
func Int64(f float64) int64 {
	if f >= math.MinInt64 && f < -math.MinInt64 {
		return int64(f)
	}
	return math.MinInt64
}

// Uint64 is Int64 for unsigned integers, which may be larger.
func Uint64(f float64) uint64 {
	if f >= -math.MinInt64 {
		return uint64(f)
	}
	return uint64(Int64(f))
}

// Int is Int64 for sizes and positions, which no string reaches.
func Int(f float64) int { return int(max(min(Int64(f), math.MaxInt32), math.MinInt32)) }

// IsDigit reports whether a byte is a decimal digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }
