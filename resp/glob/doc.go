// Package glob matches names with the patterns of KEYS, SCAN, CONFIG GET and other commands.
//
// # Model
//
//	?        any one byte
//	*        any bytes, or none
//	[a-c-]   one byte that is listed or in a range; ^ in front negates the class
//	\x       x itself
//
// A pattern is a list of segments between stars. Each element of a segment takes exactly one byte:
//
//	pattern   user:  *  [0-9]?  *  :name
//	           |         |           |
//	name      user:    .. 4a ..    :name
//	          at the     first       at the
//	          beginning  match       end
//
// The first segment matches at the beginning of the name and the last at its end. The search for
// each other segment starts where the one before it ended. The first match is always right, as a
// later one leaves less of the name for the rest. So there is no backtracking across stars.
//
// # Bounds
//
// A segment of plain bytes is found in linear time. A segment with wildcards can take the product
// of its length and the name's. Steps are therefore counted over all names of a call: 2^24, and 64
// more for each byte of a name. A call beyond that fails with [ErrTooComplex] and never blocks its
// connection. As in Redis, a pattern with more than 1000 separate stars matches nothing.
//
// Commands match outside the locks of the keyspace, so a slow pattern only delays its own client.
//
// # Redis' rules for odd patterns
//
// The matcher is not taken from a library: clients may rely on the meaning of odd patterns in
// Redis, and no two libraries agree on them.
//
//   - The empty name is matched by the empty pattern only, not by a star. KEYS and SCAN treat a
//     lone star themselves.
//   - A class without its ] ends with the pattern. [] matches nothing and [^] matches anything.
//   - A range may be written backward. Bytes are ordered as signed, so [a-\xff] contains NUL but
//     not b. Without case, the ends are first ordered and then lowered by C's tolower, which turns
//     all bytes but \xff into unsigned ones: [a-\xfe] is then empty.
//   - In [a-], the ] is the end of the range, and the class is not closed.
//   - An escaped byte in a class keeps its case, even without case.
//   - A backslash that ends the pattern, or a class without ], stands for itself.
package glob
