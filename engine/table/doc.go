// Package table has the keys of one database in one shard: a hash table, and the memory of the
// limiters in it.
//
// # References
//
// A key has one Object. The hash table (package dict) does not point to it, but has a reference of
// 4 bytes: a page and a slot in it.
//
//	dict                     pages
//	+-----+-----+-----+      1  counters of 48 bytes   | record | record | free   | …
//	| 2:0 | 1:1 | 3:7 |      2  buckets of 48 bytes    | record | free   | record | …
//	+-----+-----+-----+      3  other objects          | object | object | object | …
//
// A page of limiters holds records, see package object: structs with the key's name behind them,
// without pointers. All slots of a page have the same form and size, so that the page alone tells
// what a slot is. The collector does not look into such a page, nor into most of the dict: a
// million buckets cost it no more than a few thousand objects. All other objects, and records of
// more than maxRecord bytes, are allocated by themselves, and a page has the interfaces that
// point to them.
//
// A lookup reads the tags and the reference in the dict, the page in a small list, and the record.
//
// # Memory
//
// The first page of each kind has 8 slots, so that a table with few keys is small. Each further one
// has a quarter as many as the others together, up to maxPage bytes. A slot is found through the
// kind's list of pages with free slots. A page whose last record goes is dropped if another one of
// its kind has a free slot. Otherwise free slots wait for new keys of the kind; their bytes are
// idle.
//
// The slot of a log has some room for hits. A log that needs more, or much less, moves to a slot of
// another size, and a page that it was the last to leave is dropped. Other slots do not move.
//
// The memory of a removed record is not overwritten before the next Create, Insert, Repack or
// Replace, so that what a call has in its hands stays readable until then.
//
// # Invariants
//
//   - Each reference in the dict is to a slot in use, and each slot in use has one reference.
//   - The object at the reference has the name whose hash is the reference's place in the dict.
//   - A page is in its kind's list of open pages exactly if it has a free slot. At most one page of
//     a kind is empty.
//   - A slot of a page of objects that is in use is not nil, and a free one is.
//
// # Left out on purpose
//
// No compaction: after many keys have gone, their pages stay as long as each has one key left, as
// those of Go's allocator do. No lock: that of the shard guards a table.
package table
