// Package zset is the sorted set: the data type of the Z commands, and the log of every sliding
// window.
//
// # Model
//
// A set has members with a score each, in the order of (score, bytes of the member). All ranges are
// converted to ranks: ScoreSpan, LexSpan and FirstAfter return a span [lo,hi) of ranks, and Ascend,
// Descend and RemoveSpan take one.
//
// A set has two parts. Members `<ms>-<number>` with the score <ms>, as limiters record, are hits,
// and so are those of calls with ids, `id`, `id:2`, …, that AddCall has added. Their log is a
// hitlog.Log, a few bytes for each call. All other elements, the rest, are a sequence. Each part
// knows the ranks of its own elements; the rank of an element in the set is its rank in its part
// plus the number of elements of the other part before it. Hits become text when they are read.
//
// # The sequence
//
// Elements are in runs of up to 128, runs in chapters of up to 64, chapters in a B-tree
// (google/btree) once there are two. The tree itself has no ranks, but chapters and runs have their
// numbers of elements, and for a million members there are 120 to 250 chapters to add up.
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
// A full run splits in half, unless it is the last: an element added at the end begins a new run,
// so that logs are packed. Elements removed at the front stay in memory before head until a good
// part of the run can be freed. Operations at both ends of a log take constant time. The only run
// of a small set is stored in the set itself: cache misses are most of the cost of a decision.
//
// # Members that name their scores
//
// Logs that clients write mostly have the timestamp as member and score. Members that begin with
// their score as an integer are stored without it: a run has no scores while all its members are of
// this kind. They need no index either, because the member gives its position in the order.
//
// A set of one run needs no index: it has a tag of one byte for each member, in order, and compares
// the members that have the right one.
//
// All other members are in the index, a dict of (hash, score) without the member: the score gives
// the position in the order, where the member is compared. They cost 26 bytes for that and 8 for
// the score. The index is built when the set gets a second run, or is scanned. A member that is
// added to it stays there until it is removed from the set, even if it then names its score, or a
// hit: the guarantee of Scan depends on that.
//
// # Clones
//
// Clone is a point-in-time copy in nearly constant time: tree, chapters and runs are shared, each
// marked with the owner that may change it. Clone gives both sets new owners, so that neither owns
// a shared part, and a set copies a chapter or run before it first changes it. Shared parts are
// never written to, so clones may be used by other goroutines. The index is not shared: a clone
// builds its own at the first lookup of a member, which snapshots never do.
//
// # Views
//
// A View is a read-only view of a set, which is empty for a missing key. A Range selects members by
// rank, score or bytes; Members are the result, to be iterated over or stored. Keep makes either
// valid after the lock is released under which it was made.
//
// # Invariants (Check)
//
//   - Elements ascend strictly; members are unique; counts are right.
//   - A member of the rest that is a hit by its name and score is in the index.
//   - No run and no chapter is empty; the empty set has no runs.
//   - A run has at most 128 members, and only one if it exceeds 8 KB.
//   - A run without scores has only members that name their scores exactly.
//   - If the index is built, members that do not name their scores are in it,
//     and it holds only members of the set. It is built if there are several
//     runs, except in a clone.
//   - There are no tags, or as many as members, each the right one, or too few.
//
// # Left out on purpose
//
// No pointers per element, so the garbage
// collector has little to scan. No locks: the owner of a set locks it.
package zset
