// Package zset is the sorted set: the data type behind the Z commands, and the
// log of every sliding-window limiter.
//
// # Model
//
// Members with a score each, in the order of (score, bytes of the member).
// Everything about ranges is reduced to ranks: ScoreSpan, LexSpan and
// FirstAfter turn a question into a span [lo,hi) of ranks, and Ascend, Descend
// and RemoveSpan take one.
//
// # The sequence
//
// Elements are in runs of up to 128, runs in chapters of up to 64, chapters
// in a B-tree (google/btree) once there are two. The tree itself does not know
// ranks, but chapters and runs know how many they hold, and for a million
// members there are 120 to 250 chapters to add up.
//
//	tree      chapter           chapter           chapter
//	             n 8192            n 6031            n 77
//	             |                 |                 |
//	runs      [128][128][128]…  [101][64][117]…   [77]
//	             |
//	run       starts   .  .  0  15 30 …
//	          bytes    ······1700000000000-01700000000000-11700000000007-0…
//	                         head
//
// A full run splits in half, unless it is the last: what is added at the end
// begins a new one, so that logs are packed. What is dropped at the front
// stays behind head until a fair share of the run can be won back. Both ends
// of a log cost constant time. The only run of a small set stands within the
// set itself: most of what a decision costs is fetching memory.
//
// # Members that name their scores
//
// The hits of a limiter are "<ms>-<seq>" with the score <ms>, and logs made by
// hand mostly have the timestamp for member and score. Such members, that begin
// with their score as an integer, are stored without it: a run keeps no scores
// while all its members are of this kind. Nor do they need an index, as the
// member says where in the order to look. So a hit of 15 bytes in a log of a
// hundred or more costs 20 to 30 bytes of memory in all, and a set of one hit
// about 232.
//
// All other members are in the index, a dict of (hash, score) without the
// member: the score leads to the place in the order, and what is there
// reports whether it is the one. They cost 26 bytes for that and 8 for the score.
// A member that enters the index stays until removed, even if the score becomes
// the named one: on that rests the guarantee of Scan, which see.
//
// # Clones
//
// Clone is a point in time that costs next to nothing: tree, chapters and runs
// are shared, each marked with the owner who may change it. Clone gives both
// sets new marks, so that neither owns any of it, and a change of a chapter
// or run first makes a copy that bears the own mark. What is shared is never
// written to, so clones may go to other goroutines. The index is not shared:
// a clone builds its own if it is ever asked for a member, and a snapshot
// never asks.
//
// # Looking at a set that may be missing
//
// A View shows a set, or none: its methods answer for a missing key as for an empty set. A Range
// says which members are meant, by rank, score or bytes; Members are what a View gives, to be gone
// through or stored. Keep makes either outlive the lock under which it was made.
//
// # What holds (Check)
//
//   - Elements ascend strictly; members are unique; counts are right.
//   - No run and no chapter is empty, but in the empty set, which has none.
//   - A run has at most 128 members, and only one if they exceed 8 KB.
//   - A run without scores has only members that name them, to the bit.
//   - Members that do not name their scores are in the index, and the index
//     holds only members of the set.
//
// # Left out on purpose
//
// There is no encoding of its own for small sets: a set of one run is one. No
// pointers per element, so there is next to nothing for the garbage collector
// to follow. No locks: a set is guarded by its owner's.
package zset
