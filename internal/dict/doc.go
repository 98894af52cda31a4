// Package dict is the hash table of the keyspace, of large hashes and of sorted sets: extendible
// hashing (Fagin, Nievergelt, Pippenger, Strong, 1979) with small packed buckets.
//
// # Model
//
// A directory of 2^depth slots is indexed by the top bits of the hash. A slot
// points to a bucket of up to 16 entries. A bucket of a smaller depth than the
// directory fills several slots, a power of two of them, side by side:
//
//	hash   000…      010…      100…      110…      111…
//	       |         |         |         |         |
//	dir    [0]  [1]  [2]  [3]  [4]  [5]  [6]  [7]
//	        \____\    \    |    |____|    |    |
//	           A      \____B      C       D    E
//	depth      2           2      2       3    3
//
// So every bucket covers one contiguous range of hashes: those that begin with its depth bits. A
// full bucket splits by the next bit, without other buckets; two halves of one range merge when
// together they have at most 8 entries. There is no rehash, no second table and no pause: only the
// directory doubles or halves at once, and it has a pointer for every 4 to 8 entries (1 MB for a
// million, a fraction of a millisecond to copy).
//
// # A bucket in memory
//
//	0        16 17    18    24    32                              288
//	+--------+--+-----+-----+-----+----------+-----     -----+----------+
//	| 16     |n |depth|mark |next | entry 0  | entry 1 …     | entry 15 |
//	| tags   |  |     |48bit|     | 16 bytes |               |          |
//	+--------+--+-----+-----+-----+----------+-----     -----+----------+
//
// A tag is the byte of an entry's hash below the 32 bits that a directory may use as its index. A
// lookup compares 8 tags in one step and then, except for one time in twenty, only the entry it
// looks for. With 16-byte entries, an interface or a hash and a number, that makes 26 bytes an
// entry on average, directory included, and 10 bytes with the 4-byte entries of package table. A
// Dict of 16 entries is one bucket.
//
// Finding an entry that is in no cache takes three memory accesses in sequence: the tags, the
// entry, and what the entry points to. For several entries they can overlap, see Prefetch.
//
// Hashes are not stored. A split calls the owner's function for them, once or twice in the life of
// an entry.
//
// # Invariants
//
//   - The entries of a bucket agree in the first depth bits of their hashes.
//   - No two buddies (buckets of one depth that differ in its last bit) have 8 entries or
//     fewer together. So a table with few entries is not large.
//   - Some bucket has the depth of the directory, or the directory has 1 slot.
//   - A bucket has a chain only where it may not split: the directory does not
//     double while it has more than a slot for every 8 entries, so hashes that
//     agree in many bits cost time, never memory. With the keyed hash
//     (Hasher) no client can construct such keys.
//   - No entry is due before the mark of its bucket.
//
// # Scanning
//
// A cursor is a position in hash order: the top 32 bits of a hash. Splits and merges change which
// bucket covers a position but not the order, so a scan returns every entry that was there
// throughout once and only once. Redis' cursor, a reversed bucket index, guarantees "at least
// once".
//
// # Marks
//
// A keyspace must find expired keys. Instead of a separate index of deadlines, each bucket
// has a mark, a time before which none of its entries is due: 6 bytes for a dozen keys. Setting a
// deadline lowers the mark; a sweep skips the buckets whose mark is in the future and recomputes
// the marks of those it visits. A deadline that was postponed leaves its mark too early, which
// costs one needless visit.
//
// # Left out on purpose
//
// Dict does not know keys: an entry is any type, and the caller's predicate decides which one is
// meant. It has no locks, because its owner has one, and no iteration in sorted or insertion order.
package dict
