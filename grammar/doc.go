// Package grammar reads and writes numbers and words exactly as Redis does.
//
// # Model
//
// Redis has three kinds of numbers, and each command takes one of them:
//
//	integer      ParseInt, AddInt                             64 bits, one spelling per number
//	double       ParseFloat, AppendFloat                      C's strtod and %.17g
//	long double  ParseLongDouble, AddLongDouble, AppendLongDouble   the x87's 80 bits, %.17Lf
//
// An integer has one spelling: "+1", "01", "-0", " 1" and "" are refused. So a stored integer can
// be distinguished from a string by its bytes, and reads back as it was written.
//
// A double or long double is what strtod takes, except NaN and surrounding space:
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
//   - A value that would overflow, or become zero by underflow, is refused rather than changed.
//   - Parsing is linear in the argument. A long double has a bound on its digits and its exponent,
//     so that no argument costs more than arithmetic on a few KB.
//   - ParseInt and EqualFold do not allocate. Every decision uses them.
//
// # Left out on purpose
//
// Numbers with units ("64mb") belong to package config, durations ("1h") to the commands that take
// them. Locales and Unicode case do not exist: letters are ASCII, as in Redis.
package grammar
