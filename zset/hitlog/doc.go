// Package hitlog is the hits of a limiter in few bytes: a byte or two for a call, or those of its
// id and some more, whatever it costs.
//
// # Model
//
// A hit is a time in milliseconds and a number, which is its own within that millisecond. Hits are
// in the order of (time, decimal text of the number), as the members `<time>-<number>` of a sorted
// set are: 10 comes before 9. Package zset has these members, which exist as text only while
// somebody reads them.
//
// The hits of a call with an id are named by it: id, id:2, id:3, … They are in the same order, by
// (time, bytes of the name). A Log is two logs, of hits without ids and with, whose ranks add up.
//
// # Encoding
//
// Calls record hits with consecutive numbers, so an entry is a time, the first number and a count,
// each as a varint, the time as the distance from the entry before. Most entries are one hit with
// the number 0: the distance alone.
//
//	hits     …000-0  …007-0 …007-1 …007-2  …019-0
//	entries  +2      +14|1 0|1 2           +24
//
// Entries are in chunks of about 256 bytes. The last one, the tail, is changed in place, and the
// data of the others never: it is shared with clones. Hits that leave a log at its front cost
// nothing but a step over their entries. Any other change decodes a chunk and encodes it anew.
//
// The entries of one millisecond are a group. Their hits interleave: with 1, 2 and 10 to 12, the
// order is 1, 10, 11, 12, 2. The numbers of equally many digits are in numeric order, though, so a
// cut through this order is one number for each count of digits, and ranks, counts and removals
// within a group are arithmetic over such cuts, see decimal.go.
//
// # Calls with ids
//
// An entry is a call: its time, its id and the numbers of its hits, mostly those from 1 to its
// cost. Entries are in the order of (time, id), and in chunks of about 192 bytes, with the sums of
// hits before them. Chunks are changed as above. An index of (hash of the id, time) finds the calls
// with an id, once there are several chunks.
//
// Within a millisecond the names of calls, and those of hits without ids, lie between each other:
// a, a!, a!:2, a:10, a:10:x, a:2. As no text that names begin with goes on with digits alone to
// another, names of one such text that are between two of another all are. So the order is that of
// blocks, parts of calls, which are found by cuts again, see group.go.
//
// # Invariants (Check)
//
//   - All hits of a chunk come before those of the next. A group with more entries than fit a
//     chunk is divided by a cut.
//   - Within a chunk, entries ascend by (time, first number). Those of a group do not touch.
//   - Counts, times and sizes are right. Only the tail can be empty, and only in an empty log.
//
// # Left out on purpose
//
// No tree over the chunks: a log of a million calls has some 8,000, whose counts are added up for a
// rank in the middle, in a few microseconds. Limiters ask near the two ends.
package hitlog
