// Package rdb reads and writes the payloads of DUMP and RESTORE: one value in the format of Redis'
// snapshots, version 10, as Redis 7.0 writes it.
//
// # A payload
//
//	+--------+-------- … --------+-----------+-----------+
//	| type 1 | value             | version 2 | CRC-64  8 |
//	+--------+-------- … --------+-----------+-----------+
//
// Version and checksum are little-endian; the checksum is Jones' CRC-64 of everything before it.
// Every version is read: later ones, of Redis 7.2 and 8 and of Valkey, only add types, and a type
// that is not in the table is refused.
//
//	type   value                                                             written
//	0      string                                                            yes
//	1      length · string…                                   list           yes
//	2      length · string…                                   set            yes
//	3      length · (string · score as text)…                 sorted set
//	4      length · (string · string)…                        hash           yes
//	5      length · (string · score, 8 bytes)…                sorted set     yes
//	9      string that holds a zipmap                         hash
//	10     string that holds a ziplist                        list
//	11     string that holds a set of integers                set
//	12     string that holds a ziplist                        sorted set
//	13     string that holds a ziplist                        hash
//	14     length · string that holds a ziplist…              list
//	16     string that holds a listpack                       hash
//	17     string that holds a listpack                       sorted set
//	18     length · (1 · string | 2 · listpack)…              list
//	20     string that holds a listpack                       set
//	200    missing · fraction · since · earned                  rl.token       yes
//	201    start · length · used · 0                            rl.fixed       yes
//	202    start · length · current · previous                  rl.counter     yes
//	250    rules · length · (string · amount · until)… ·
//	       type and value of 5 or 200 to 202                    with reservations
//	251    string with denials and a ban · type and value of
//	       5, 200 to 202 or 250                                 with a ban
//
// Types from 200 on are this server's own, and never renumbered. Redis refuses them as bad data.
// Their numbers are zigzag varints. The other types of Redis are streams and modules; the error for
// one names it.
//
//	length  00nnnnnn                          string  length · bytes
//	        01nnnnnn nnnnnnnn                         11000000 · integer of 1 byte
//	        10000000 · 4 bytes, big-endian            11000001 · 2 bytes
//	        10000001 · 8 bytes, big-endian            11000010 · 4 bytes
//	                                                  11000011 · length · inflated length · LZF
//
// Nothing is written deflated or as a listpack. Redis makes a listpack of a small value itself.
//
// # Packed values
//
//	listpack  size 4 · count 2 · entry… · ff
//	          entry: head · bytes · length of both, from the end on, 7 bits a byte
//	ziplist   size 4 · tail 4 · count 2 · entry… · ff
//	          entry: length of the entry before · head · bytes
//	integers  width 4 · count 4 · (integer of width bytes)…
//	zipmap    count 1 · (length · bytes · length · unused 1 · bytes · unused)… · ff
//
// # Untrusted payloads
//
// The checksum protects against accidents only. A payload is read two times or three before its
// value is made: all lengths, counts, scores and back references are checked, then whether a name
// occurs twice. For that a deflated string is inflated piece by piece, and names are compared by
// their hashes, in several rounds if there are more than fit. So a payload that is refused costs at
// most four times its size, whatever it claims or inflates to, and the caller can make room before
// the value takes memory. Texts alias the payload where possible.
//
// # Left out on purpose
//
// Files: this server has its own format, see package persistence. Deflating: payloads are mostly
// sent once, so it would cost more than it saves.
package rdb
