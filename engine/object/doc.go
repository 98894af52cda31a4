// Package object has the values of keys: strings, hashes, lists, sets, sorted sets, and the
// states of limiters.
//
// An Object has its key's name and deadline: a Header, or those of a record, which is a limiter in
// one piece of memory without pointers. No object has a lock: that of its shard guards it. Objects
// are changed by the effects of package effect, which package engine applies; nothing here reads a
// clock or decides a call.
//
// # Adding a type
//
// A type is a struct that implements Object: weight, save (for snapshots), content (for DUMP),
// digest, encoding, clone. A type that lacks one of these does not compile; save and digest are
// unexported, so all types are in this package. A limiter whose state is a few numbers implements
// State as well; token.go is an example. fits.go has the effects that can apply to a type, and
// parses the numbers of a State.
//
// # Memory
//
// Each object returns its weight without visiting its elements. The weight depends only on what
// effects change, so package engine adds up the memory of all keys as they change. A short name is
// part of the object's own allocation, and that of a record is part of the record. Spare bits of
// each object hold the access clock and the pressure, which package eviction uses.
//
// # Extensions
//
// A limiter whose calls reserve something has an Extension: with its reservations, see package
// reserve. That of a log of hits is behind a pointer in its sorted set, which may then be empty. A
// state without pointers has no place for one: the key gets an Extended instead, which has the
// state in a record of its own, and the same type and commands.
//
// # Saving while changes continue
//
// A Batch encodes objects as effects under their shard's lock. Large objects are encoded later:
// a sorted set from a clone, a hash by a frozen walk through its fields, to which each change
// passes the field that it is about to change. A long string is shared until it is overwritten.
//
// # Where things are
//
//	object.go                     Object, Header, State, how objects are allocated
//	string.go, hash.go, zset.go   the types of Redis; fields.go, frozen.go: the fields of a hash
//	token.go, fixed.go, counter.go, packed.go   the states of limiters
//	log.go                        a sorted set of few hits as a record
//	record.go                     how these are in memory, with their names
//	extension.go                  what some limiters have besides
//	fits.go                       which effects fit which objects
//	save.go                       objects as effects, for snapshots
//	weight.go, content.go, digest.go   memory, DUMP and RESTORE, DEBUG DIGEST
package object
