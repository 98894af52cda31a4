package grammar

import (
	"bytes"
	"math"
	"strconv"
)

// float has the parts of a floating point number in the syntax of C's strtod:
//
//	[+-] digits [. digits] [e [+-] digits]
//	[+-] 0x hexdigits [. hexdigits] [p [+-] digits]
//	[+-] inf | infinity
//
// in any case, with a digit on at least one side of the point. Redis accepts all of these, but no
// surrounding space and no NaN.
type float struct {
	negative bool
	infinite bool
	hex      bool
	whole    []byte // digits before the point
	fraction []byte // digits after the point
	exponent int    // power of ten, or of two if hex
}

// farExponent is beyond the range of every format, and small enough to be added to the length of an
// argument without overflow.
const farExponent = 1 << 40

// IsFloat reports whether b has the syntax of a number for ParseFloat, whatever its size.
func IsFloat(b []byte) bool {
	_, ok := scanFloat(b)
	return ok
}

// scanFloat returns the parts of a number.
func scanFloat(b []byte) (f float, ok bool) {
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		f.negative = b[0] == '-'
		b = b[1:]
	}
	if EqualFold(b, "INF") || EqualFold(b, "INFINITY") {
		f.infinite = true
		return f, true
	}
	isDigit, mark := isDecimal, byte('e')
	if len(b) > 1 && b[0] == '0' && b[1]|0x20 == 'x' {
		f.hex = true
		isDigit, mark = isHex, 'p'
		b = b[2:]
	}
	f.whole, b = spanDigits(b, isDigit)
	if len(b) > 0 && b[0] == '.' {
		f.fraction, b = spanDigits(b[1:], isDigit)
	}
	if len(f.whole)+len(f.fraction) == 0 {
		return f, false
	}
	if len(b) > 0 && b[0]|0x20 == mark {
		f.exponent, b, ok = scanExponent(b[1:])
		return f, ok && len(b) == 0
	}
	return f, len(b) == 0
}

// scanExponent parses a signed decimal and limits it to ±farExponent.
func scanExponent(b []byte) (exponent int, rest []byte, ok bool) {
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		b = b[1:]
	}
	digits, rest := spanDigits(b, isDecimal)
	for _, c := range digits {
		exponent = min(exponent*10+int(c-'0'), farExponent)
	}
	if negative {
		exponent = -exponent
	}
	return exponent, rest, len(digits) > 0
}

// isZero reports whether all digits are zeros.
func (f *float) isZero() bool {
	return !f.infinite && len(bytes.TrimLeft(f.whole, "0")) == 0 && len(bytes.TrimLeft(f.fraction, "0")) == 0
}

func spanDigits(b []byte, isDigit func(byte) bool) (digits, rest []byte) {
	n := 0
	for n < len(b) && isDigit(b[n]) {
		n++
	}
	return b[:n], b[n:]
}

func isDecimal(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool {
	_, ok := HexDigit(c)
	return ok
}

// ParseFloat parses a double as Redis parses scores. ok is false for NaN, and for a number that
// overflows or underflows to zero.
func ParseFloat(b []byte) (d float64, ok bool) {
	if len(b) <= 15 { // exact in a double
		if n, ok := ParseInt(b); ok {
			return float64(n), true
		}
	}
	f, ok := scanFloat(b)
	if !ok {
		return 0, false
	}
	text := string(b)
	if f.hex && bytes.IndexByte(b, 'p') < 0 && bytes.IndexByte(b, 'P') < 0 {
		text += "p0" // strconv requires an exponent
	}
	d, err := strconv.ParseFloat(text, 64)
	return d, err == nil && (d != 0 || f.isZero())
}

// AppendFloat appends a double in the format of Redis' replies: C's %.17g, which is enough to read
// the same double back, though not the shortest text.
func AppendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.Abs(f) < 1e15 && f == math.Trunc(f) && f != 0:
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return strconv.AppendFloat(dst, f, 'g', 17, 64)
}
