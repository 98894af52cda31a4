// Package grammar reads and writes numbers and words exactly as Redis does.
//
// # Model
//
// Redis has three kinds of numbers; each command takes one of them:
//
//	integer      ParseInt, AddInt                             64 bits, one spelling per number
//	double       ParseFloat, AppendFloat                      C's strtod and %.17g
//	long double  ParseLongDouble, AddLongDouble, AppendLongDouble   the x87's 80 bits, %.17Lf
//
// An integer has one spelling: "+1", "01", "-0", " 1" and "" are errors. So the bytes of a stored
// value show whether it is an integer, and an integer is read back exactly as it was written.
//
// A double or long double has the syntax of strtod, without NaN and surrounding space:
//
//	[+-] digits [. digits] [e [+-] digits]
//	[+-] 0x hexdigits [. hexdigits] [p [+-] digits]
//	[+-] inf | infinity
//
// INCRBYFLOAT and HINCRBYFLOAT compute in long double. A big.Float with 64 bits of precision rounds
// every operation the same way, and the range of the exponent is checked here.
//
// # Invariants
//
//   - A value that overflows, or becomes zero by underflow, is an error.
//   - Parsing takes time in proportion to the argument. The digits and the exponent of a long
//     double are limited, so that no argument costs more than arithmetic on a few KB.
//   - ParseInt and EqualFold do not allocate. Every decision uses them.
//
// # Left out
//
// Package config parses numbers with units ("64mb"), and commands that take durations parse those
// ("1h"). There are no locales and no Unicode case: letters are ASCII, as in Redis.
package grammar
