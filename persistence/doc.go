// Package persistence stores the effects of calls in a directory, so that they survive the process:
// as records in a log, one for each call, and as snapshots of the whole keyspace, which replace the
// log before them.
//
// # A data directory
//
//	0000000007.snapshot      all keys at the time when segment 7 begins
//	0000000007.log           the effects since then, call by call
//	0000000008.log           …
//	0000000009.log           the segment that is being written
//	0000000010.snapshot.tmp  an incomplete snapshot: readers ignore it
//	lock                     locked by the process that uses the directory, with its pid in it. If
//	                         it is another file now, that process changes nothing here any more
//	before-repair-<time>     copies of all files from before a Repair
//
// Files with other names are ignored. Each start begins a new segment: no process writes behind
// bytes that another process wrote.
//
// # A file
//
//	+----------+---------+------+----------+---------+------+---------+--------------------+
//	| RLSERVER | version | kind | sequence | created | salt | CRC-32C | record, record, …  |
//	| 8 bytes  | 4       | 4    | 8        | Unix ms | 8    | 4       | zstd in a snapshot |
//	+----------+---------+------+----------+---------+------+---------+--------------------+
//
//	record:  length (8) · CRC-32C of the payload (4) · payload: kind (1) · Unix ms · content
//	  1 call     effect, effect, …   all effects of one call: it is stored whole or not at all;
//	                                in a snapshot those of many keys
//	  2 synced   salt + bytes        a mark: this number of bytes of the segment was durable
//	  3 end      records             the snapshot is complete, with this number of records before
//	effect:  kind (1) · database (uvarint) · key (bytes) · fields, in the order of effect.Append;
//	         the top bit of the kind says that they are in the packed form, see package effect
//	bytes:   length (uvarint) · that many bytes
//
// Fixed-size integers are little-endian. Integers that may be negative are zigzag varints. Scores
// are the 8 bytes of the double. Package effect has the codec of effects. Kinds are added, and
// never renumbered. The version is raised when an older server could not read the files. A file of
// a newer version is an error that names it, and is not changed.
//
// Decoding never panics, and allocates memory for bytes that have arrived, not for a length alone.
// Decoded effects alias the record's bytes; engine.Apply copies what it keeps. Snapshots are
// compressed by github.com/klauspost/compress, because the standard library has no zstd.
//
// # The writer
//
// Append copies the effects of a call to memory, under the locks of its shards; a call waits for no
// more than that. One goroutine (log.run) takes the appended records after 20 ms, or at once when a
// call waits for it or 256 KB have been appended. It writes them with one write, and syncs as the
// sync mode requires. A cut is a place in that stream where the next segment begins: at a snapshot,
// or when a segment has 64 MB. A segment is synced and closed before the next one is created, in
// every mode, so that a crash can tear the last one only. A mark is written before the next
// records, and at the end of a log that is closed in order.
//
//	always     Wait returns when the position is durable; calls that wait together share a sync.
//	           While five or more wait, it begins later, by half the time of the last one, for
//	           others to share it. A call waits for the latest change that it has seen
//	           (engine.Tx.End)
//	everysec   a sync begins within a second of each append: a crash of the machine loses no more.
//	           If it has not ended two seconds after the append, Wait delays what is appended from
//	           then on until it is durable, so that no more is lost even if the disk hangs
//	no         the operating system decides, except for whole segments and the end. Wait delays
//	           likewise if a write takes so long
//
// With the latter two, a crash of the process alone loses what was not yet written: 20 ms, or more
// while the disk is slow. Wait delays calls while 32 MB wait to be written.
//
// # A snapshot
//
// A snapshot begins with a cut, under all locks. From then on it takes no lock for long
// (engine.Snapshot). It is written under a temporary name and synced. It is renamed when the log
// has reached the segment of its number. When the rename is durable, all older files are removed.
// Whenever a crash happens, there is a complete snapshot with the log after it, or a
// complete log. Writing takes a fifth of one processor's time, so that calls are not delayed. A
// snapshot may have any size. A record in one has at most 1.5 GB, which is more than the name, a
// field and its value of any key.
//
// # Recovery, case by case
//
//	newest snapshot undamaged       it is loaded, then the segments from its number on
//	newest snapshot damaged         an older one, or none, if the log has no gap from there on;
//	                                otherwise an error
//	last segment ends in a record   torn: cut off and logged with bytes and time; an error if a
//	                                mark says that this part was synced
//	last segment ends in its header removed: it has no records. So is one that has a damaged
//	                                header and nothing after it
//	anything else is not a record   damage: an error that names file, offset and what to do
//	a segment is missing between    an error that names it
//	keys in an unknown database     an error that says what --databases must be
//	a file of a newer version       an error; Repair does not change it either
//	expired keys                    deleted by Start, as effects in the log like any others
//
// A mark counts from the salt of its segment, a random number, so that no value that a client
// stores can look like one. Check reports all this and changes nothing. Repair copies all files.
// Then it cuts the log where it is damaged, rewrites a header if only that is damaged, or keeps the
// keys of a snapshot before its damage, without the log after it. Dump prints the records as lines.
//
// Server time continues after a start from the latest time in all records, marks and ends included
// (Recovery.Last). If that is ahead of the present, RepairClock loads the directory, moves the
// state back, and replaces all files by one snapshot.
//
// # When the disk fails
//
// A write that fails because the disk is full (ENOSPC, EDQUOT) is retried four times a second. The
// part of a record that the short write has left is cut off first, so the segment always ends with
// a whole record; a segment that cannot be created is removed. Meanwhile records wait in memory, up
// to 32 MB: Refuses returns why changes are refused, Wait with storage.SyncAlways returns that
// error, and what was written is synced. If there is no space by the end, Close returns how many
// changes were not written.
//
// Any other failed write, and any failed sync, closes the log until the process ends: the content
// of the disk is then unknown, and a second sync would not help. The same holds if its segment is
// no longer in the directory, which is checked twice a second. If the server is configured to
// continue in memory, it logs (slog) each minute that it does. A snapshot may still succeed; then
// the next start loads that one.
//
// # Tests
//
// A disk in memory (disk_test.go) fails at each operation in turn, tears writes and loses what was
// not synced. testdata/v<version> has golden directories of each format version, which are never
// edited and always read. TestWriteGolden creates those of a new version, if RLSERVER_WRITE_GOLDEN
// is set.
//
// # Left out on purpose
//
// No compression of the log: records are small, and would have to wait for each other. No clock:
// times in effects are absolute. No rewriting of a log: a snapshot replaces it. No index:
// everything is read in order. No checksum of a whole file: each record has its own, and a snapshot
// has an end record. No encryption.
package persistence
