package grammar

import (
	"bytes"
	"math"
	"math/big"
	"strconv"
)

// parseInt reads a signed 64-bit integer as Redis writes one: decimal digits,
// a minus where needed, and nothing else. There is one way to write each
// number, so a plus, leading zeros, "-0", spaces and the empty string are all
// refused, as is what lies beyond int64.
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

// float is a floating point number as C's strtod reads one, taken apart:
//
//	[+-] digits [. digits] [e [+-] digits]
//	[+-] 0x hexdigits [. hexdigits] [p [+-] digits]
//	[+-] inf | infinity
//
// in any case, with a digit on at least one side of the point. Redis takes
// all of these, but no space around them and no NaN.
type float struct {
	negative bool
	infinite bool
	hex      bool
	whole    []byte // digits before the point
	fraction []byte // digits after it
	exponent int    // of ten, or of two if hex
}

// farExponent is beyond the range of any format in use, and small enough to
// be added to the length of an argument.
const farExponent = 1 << 40

// IsFloat reports whether b is a floating point number as ParseFloat reads one, of any size.
func IsFloat(b []byte) bool {
	_, ok := scanFloat(b)
	return ok
}

// scanFloat takes a number apart.
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

// scanExponent reads a signed decimal. One of absurd size is cut to
// farExponent.
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

// isZero reports whether all digits are zeros, whatever the exponent.
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

// parseFloat reads a double as Redis reads scores and the like. What is too
// large for a double is refused, and what is so small that it would become
// zero, rather than changed to something else; so is NaN.
func ParseFloat(b []byte) (float64, bool) {
	if len(b) <= 15 { // an integer of so many digits is a double exactly
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
		text += "p0" // strconv insists on an exponent
	}
	d, err := strconv.ParseFloat(text, 64)
	return d, err == nil && (d != 0 || f.isZero())
}

// appendFloat appends a double as Redis replies with one: C's %.17g. That is
// enough digits to read the same double back, if not the fewest.
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

// INCRBYFLOAT and HINCRBYFLOAT compute in C's long double, which where Redis
// is mostly run is the 80-bit format of the x87: 64 bits of precision and 15
// of exponent. A big.Float of that precision rounds every operation the same
// way.
const (
	LongDoublePrecision = 64
	LongDoubleMaxExp    = 16384  // all are below 2 to this power
	longDoubleMinExp    = -16445 // the least above zero is 2 to this power
	longDoubleMaxText   = 5 << 10
)

// parseLongDouble reads a number as INCRBYFLOAT does, by the same grammar as
// parseFloat. ok is false for what is no number, and for what would overflow
// or become zero.
func ParseLongDouble(b []byte) (f *big.Float, ok bool) {
	if len(b) >= longDoubleMaxText {
		return nil, false
	}
	text, ok := scanFloat(b)
	if !ok {
		return nil, false
	}
	f = new(big.Float).SetPrec(LongDoublePrecision)
	if text.infinite {
		return f.SetInf(text.negative), true
	}
	if !text.isZero() && !text.setBig(f) {
		return nil, false
	}
	if text.negative {
		f.Neg(f)
	}
	return f, true
}

// setBig sets z to the number without its sign, rounded once, to nearest even,
// and reports whether that is within the range of a long double.
func (f *float) setBig(z *big.Float) bool {
	base, perDigit, reach := 10, 1, 5000 // 10^5000 is out of range, as is 10^-5000
	if f.hex {
		base, perDigit, reach = 16, 4, 17000 // as is 2^17000
	}
	digits := append(append([]byte(nil), f.whole...), f.fraction...)
	exponent := f.exponent - perDigit*len(f.fraction)
	significant := bytes.TrimLeft(digits, "0")
	if magnitude := exponent + perDigit*len(significant); magnitude > reach || magnitude < -reach {
		return false
	}
	mantissa, _ := new(big.Int).SetString(string(significant), base)
	if f.hex {
		z.SetInt(mantissa)
		z.SetMantExp(z, exponent)
	} else {
		scaleByTen(z, mantissa, exponent)
	}
	return inLongDouble(z)
}

// scaleByTen sets z to mantissa times ten to the exponent.
func scaleByTen(z *big.Float, mantissa *big.Int, exponent int) {
	power := big.NewInt(int64(max(exponent, -exponent)))
	power.Exp(big.NewInt(10), power, nil)
	if exponent >= 0 {
		z.SetInt(mantissa.Mul(mantissa, power))
		return
	}
	// SetInt is exact for a Float that has no precision yet.
	z.Quo(new(big.Float).SetInt(mantissa), new(big.Float).SetInt(power))
}

// inLongDouble reports whether z, which is finite and not zero, neither
// overflows a long double nor rounds to zero in one.
func inLongDouble(z *big.Float) bool {
	exp := z.MantExp(nil) // z is from 2^(exp-1) up to 2^exp
	if exp == longDoubleMinExp {
		return z.MinPrec() > 1 // half the least: a tie, which goes to the even zero
	}
	return exp > longDoubleMinExp && exp <= LongDoubleMaxExp
}

// addLongDouble adds two numbers in long double arithmetic. ok is false if
// the sum is not finite, which Redis refuses with "increment would produce NaN
// or Infinity".
func AddLongDouble(a, b *big.Float) (sum *big.Float, ok bool) {
	if a.IsInf() || b.IsInf() {
		return nil, false
	}
	sum = new(big.Float).SetPrec(LongDoublePrecision).Add(a, b)
	return sum, sum.MantExp(nil) <= LongDoubleMaxExp
}

// appendHumanFloat appends a long double as INCRBYFLOAT replies with one: C's
// %.17Lf without trailing zeros. f is finite.
func AppendLongDouble(dst []byte, f *big.Float) []byte {
	start := len(dst)
	dst = f.Append(dst, 'f', 17)
	dst = bytes.TrimRight(dst, "0")
	dst = bytes.TrimSuffix(dst, []byte{'.'})
	if string(dst[start:]) == "-0" {
		return append(dst[:start], '0')
	}
	return dst
}

// equalFold compares an argument with a word in upper case, ASCII letters in any case.
func EqualFold(b []byte, upper string) bool {
	if len(b) != len(upper) {
		return false
	}
	for i, c := range b {
		if 'a' <= c && c <= 'z' {
			c -= 'a' - 'A'
		}
		if c != upper[i] {
			return false
		}
	}
	return true
}

// addInt is a+b; ok is false if that is no 64-bit integer.
func AddInt(a, b int64) (sum int64, ok bool) {
	sum = a + b
	return sum, (sum >= a) == (b >= 0)
}

func HexDigit(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
