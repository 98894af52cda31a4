// Package persistence keeps the effects of calls in a form that outlives the call: as records, one per call, that can be
// read back and applied to an empty engine.
//
// # What is here
//
//	record.go   the codec: a call's effects to bytes and back
//	memory.go   a journal that keeps its records in memory
//
// The server of today runs without a journal: its state is in memory and ends with the process, as the README says. The interface
// between engine and journal, the effect stream and the format of a record are what a log on disk will be built on; the tests run all
// three, so that they stay true until then.
//
// # A record
//
// All effects of one call are one record, so that a call is kept whole or not at all:
//
//	+-----------+-----------+----------------------------------------------+
//	| length    | CRC-32C   | payload                                      |
//	| 8 bytes   | 4 bytes   | length bytes: effect, effect, …              |
//	+-----------+-----------+----------------------------------------------+
//
//	effect:  kind (1 byte) · database (uvarint) · key (bytes) · the fields of that kind, in the order of the field bits
//	bytes:   length (uvarint) · that many bytes
//
// Fixed-size integers are little-endian; whole numbers that may be negative are zigzag varints; scores are the 8 bytes of the double.
// The checksum covers the payload. Which fields a kind has stands in one table (kindFields), which encoder and decoder both walk; a
// test over all kinds fails if one has no entry or loses something on the way.
//
// # What is promised
//
// Decoding never panics and never allocates by a length that has not been checked against the bytes that are there: a damaged record
// is an error that says where and why. Decoded effects alias the record's bytes and are good for as long as those are; engine.Apply
// copies what it keeps. Kinds and field bits are part of the format: they are added to, never renumbered.
//
// # Left out on purpose
//
// No compression per record: records are small, and a log compresses better by the block. No clock: times in effects are absolute.
package persistence
