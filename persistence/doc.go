// Package persistence keeps the effects of calls in a directory, so that they outlive the process: as records in a log, one per call,
// and as snapshots of the whole keyspace that take the place of the log before them.
//
// # A data directory
//
//	0000000007.snapshot      all keys at the moment when segment 7 begins
//	0000000007.log           what has happened since, call by call
//	0000000008.log           …
//	0000000009.log           the segment that is being written
//	0000000010.snapshot.tmp  a snapshot on its way: not there, for whoever reads
//	lock                     locked by the process whose directory it is, with its pid in it
//	before-repair-<time>     what Repair found, file by file
//
// Other names are passed over. A start always begins a segment of its own: nobody writes behind bytes that another process wrote.
//
// # A file
//
//	+----------+---------+------+----------+-----------------+------+--------+---------------------+
//	| RLSERVER | version | kind | sequence | created, Unix ms| salt | CRC-32C| record, record, …   |
//	| 8 bytes  | 4       | 4    | 8        | 8               | 8    | 4      | zstd in a snapshot  |
//	+----------+---------+------+----------+-----------------+------+--------+---------------------+
//
//	record:  length (8) · CRC-32C of the payload (4) · payload: kind (1) · time, Unix ms · what that kind says
//	  call     effect, effect, …        all effects of one call, so that it is kept whole or not at all
//	  synced   salt + bytes             a mark: so many bytes of this segment were on the disk for good when this was written
//	  end      records                  a snapshot is whole, with so many records before this one
//	effect:  kind (1) · database (uvarint) · key (bytes) · the fields of that kind, in the order of the field bits
//	bytes:   length (uvarint) · that many bytes
//
// Fixed-size integers are little-endian; whole numbers that may be negative are zigzag varints; scores are the 8 bytes of the double.
// Which fields a kind has stands in one table (kindFields), which encoder and decoder both walk. Kinds and field bits are added to,
// never renumbered; the version grows when an older server could not read what is written. A newer one is refused by name, and touched
// by nothing.
//
// Decoding never panics, and takes memory for bytes that have come, not for those that a length promises. Decoded effects alias the
// record's bytes; engine.Apply copies what it keeps. Snapshots are compressed by github.com/klauspost/compress, as the standard
// library has no zstd.
//
// # The writer
//
// Append encodes a call and copies it to memory, under the locks of its shards; that is all a call waits for. One goroutine (log.run)
// takes what has come, after 20 ms, or at once when somebody waits for it or 256 KB have come, writes it with one write, and syncs as the policy says. A cut is a
// place in that stream where the next segment begins: where a snapshot is taken, or when a segment has 64 MB. A segment is synced and
// closed before the next one is made, whatever the policy, so a crash can tear the last one alone. A mark goes before the next
// records, and at the end of a log that is ended in order.
//
//	always     Wait returns when the position is on the disk; all that wait at the same time share a sync.
//	           A call waits for the latest change it has seen, its own or not (engine.Tx.End)
//	everysec   a sync begins within a second of each append: that much a crash of the machine can cost
//	no         the operating system decides, but for whole segments and the end
//
// With the latter two, a crash of the process alone costs what was not yet written: 20 ms, or more while the disk is slow. Wait holds
// calls up when 32 MB wait to be written.
//
// # A snapshot
//
// It begins under all locks with a cut, and from there on has its own time (engine.Snapshot). It is written under a temporary name and
// synced; it is renamed when the log has come to the segment of its number; and when that is for good, all files before it are
// removed. Whenever a crash comes, there is a whole snapshot with the log from there on, or a whole log. The writing takes a fifth of one
// processor's time, so that calls are not held up.
// A snapshot may have any size; a record in one has at most 1.5 GB, which is more than any key's name, field and value take.
//
// # Recovery, case by case
//
//	newest snapshot whole                 it is loaded, then the segments from its number on
//	newest snapshot damaged               an older one, or none, if the log goes on from there without a gap; otherwise the start stops
//	the last segment ends in no record    torn: cut off there, and told with bytes and time, unless a mark behind it says it was synced
//	the last segment ends in its header   removed: nothing was in it; so is one with a damaged header and nothing behind it
//	anything else that is no record       damage: the start stops and names file, offset and what to do
//	a segment missing in the midst        the start stops and names it
//	keys in a database that there is not  the start stops and says what --databases must be
//	a file of a newer format version      the start stops; Repair leaves it alone
//	keys whose time has come              deleted by Start, as an effect in the log like any other
//
// A mark counts from the salt of its segment, a random number, so that nothing that a client stores can pass for one. Check tells all
// this without changing anything. Repair copies all files, then cuts the log where it is damaged, writes a header anew if only that
// is, or keeps the keys of a snapshot before its damage, without the log from there on. Dump tells the records as lines.
//
// The latest time in the records, marks and ends included, is what server time goes on from after a start (Recovery.Last). RepairClock
// takes a directory back whose latest time is ahead of the present: it reads all, moves the state and puts one snapshot in place of all files.
//
// # When the disk fails
//
// A write that finds no room (ENOSPC, EDQUOT) is tried again four times a second. What the short
// write has left of a record is cut off first, so the segment always ends in a whole record; a segment
// that cannot be begun is removed. Meanwhile records wait in memory, up to 32 MB: Refuses tells why
// changes are to be refused, Wait under always returns that error, and what was written is synced.
// If there is no room by the end, Close says how many changes were not written.
//
// Any other write that fails, and any sync, is the end of the log: what is on the disk then is
// unknown, and a second sync would not tell. So is a segment that is no longer in the directory,
// which is looked for twice a second. If the server is to go on from memory, its own log (slog) says
// so each minute. A snapshot may still succeed; then the next start goes on from that one.
//
// # Tests
//
// A disk in memory (disk_test.go) fails at each operation in turn, tears writes and forgets what was not synced. testdata/v<version>
// has golden directories of each format version, which are never edited and always read: TestWriteGolden makes those of a new version,
// if RLSERVER_WRITE_GOLDEN is set.
//
// # Left out on purpose
//
// No compression of the log: records are small, and would wait for each other. No clock: times in effects are absolute. No rewriting
// of a log: a snapshot is one. No index, as all is read in order. No checksum over a file, as each record has its own, and a snapshot
// an end. No encryption.
package persistence
