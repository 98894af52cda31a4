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
	LongDoubleMaxExp    = 16384   // all numbers are less than 2 to this power
	longDoubleMinExp    = -16445  // the smallest number above zero is 2 to this power
	longDoubleMaxText   = 5 << 10 // bytes of an argument, as in Redis
)

// ParseLongDouble parses a number as INCRBYFLOAT does. The syntax is that of ParseFloat. ok is
// false if it is not a number, or if it overflows or underflows to zero. f may be infinite.
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

// setBig sets z to the absolute value of the number, rounded once, to nearest even. It reports
// whether z is in the range of a long double.
func (f *float) setBig(z *big.Float) bool {
	base, perDigit, limit := 10, 1, 5000 // 10^5000 and 10^-5000 are out of range
	if f.hex {
		base, perDigit, limit = 16, 4, 17000 // so is 2^17000
	}
	digits := append(append([]byte(nil), f.whole...), f.fraction...)
	exponent := f.exponent - perDigit*len(f.fraction)
	significant := bytes.TrimLeft(digits, "0")
	if magnitude := exponent + perDigit*len(significant); magnitude > limit || magnitude < -limit {
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

// scaleByTen sets z to mantissa * 10^exponent.
func scaleByTen(z *big.Float, mantissa *big.Int, exponent int) {
	power := big.NewInt(int64(max(exponent, -exponent)))
	power.Exp(big.NewInt(10), power, nil)
	if exponent >= 0 {
		z.SetInt(mantissa.Mul(mantissa, power))
		return
	}
	// SetInt is exact for a new Float
	z.Quo(new(big.Float).SetInt(mantissa), new(big.Float).SetInt(power))
}

// inLongDouble reports whether z, which is finite and not zero, neither overflows nor rounds to
// zero in a long double.
func inLongDouble(z *big.Float) bool {
	exp := z.MantExp(nil) // z is from 2^(exp-1) up to 2^exp
	if exp == longDoubleMinExp {
		return z.MinPrec() > 1 // exactly half of the smallest number rounds to zero, which is even
	}
	return exp > longDoubleMinExp && exp <= LongDoubleMaxExp
}

// AddLongDouble adds two numbers in long double arithmetic. ok is false if the sum is not finite;
// the error of Redis is "increment would produce NaN or Infinity".
func AddLongDouble(a, b *big.Float) (sum *big.Float, ok bool) {
	if a.IsInf() || b.IsInf() {
		return nil, false
	}
	sum = new(big.Float).SetPrec(LongDoublePrecision).Add(a, b)
	return sum, sum.MantExp(nil) <= LongDoubleMaxExp
}

// AppendLongDouble appends a finite long double in the format of INCRBYFLOAT's reply: C's %.17Lf
// without trailing zeros.
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
