package grammar

import (
	"bytes"
	"math/big"
)

// INCRBYFLOAT and HINCRBYFLOAT compute in C's long double. On x86-64 that is the 80-bit format of
// the x87: 64 bits of precision and 15 of exponent. A big.Float of that precision rounds every
// operation the same way.
const (
	LongDoublePrecision = 64      // bits
	LongDoubleMaxExp    = 16384   // all numbers are below 2 to this power
	longDoubleMinExp    = -16445  // the least above zero is 2 to this power
	longDoubleMaxText   = 5 << 10 // bytes of an argument; Redis has the same limit
)

// ParseLongDouble reads a number as INCRBYFLOAT does, by the same grammar as
// ParseFloat. ok is false for what is not a number, and for a number that overflows or would
// underflow to zero. f may be infinite.
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

// AddLongDouble adds two numbers in long double arithmetic. ok is false if
// the sum is not finite, which Redis refuses with "increment would produce NaN
// or Infinity".
func AddLongDouble(a, b *big.Float) (sum *big.Float, ok bool) {
	if a.IsInf() || b.IsInf() {
		return nil, false
	}
	sum = new(big.Float).SetPrec(LongDoublePrecision).Add(a, b)
	return sum, sum.MantExp(nil) <= LongDoubleMaxExp
}

// AppendLongDouble appends a long double as INCRBYFLOAT replies with one: C's
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
