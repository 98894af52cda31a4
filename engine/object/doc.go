// Package object is what a key holds: strings, hashes, sorted sets and the states of limiters.
//
// An Object begins with a Header, the key's name and its deadline, so that a limiter is one
// allocation. No object has a lock: that of its shard guards it. Objects are changed by the effects
// of package effect, which package engine applies; nothing here looks at a clock or decides a call.
//
// # Adding a type
//
// A type is a struct that implements Object: weight, save (for snapshots), content (for DUMP),
// digest, encoding, clone. One of these missing does not compile; save and digest are unexported,
// so all types are in this package. A limiter whose state is a few numbers implements State as
// well; token.go is an example. fits.go says which effects can have happened to it, and numbers are
// read back there.
//
// # Memory
//
// Each object knows its weight without being walked. It depends only on what effects change, so
// package engine counts what all keys take as it goes. A short name is part of the object's own
// allocation. Spare bits of each object hold the access clock and the pressure that package
// eviction goes by.
//
// # Saving while changes go on
//
// A Batch turns objects into effects under their shard's lock. What is large waits: a sorted set as
// a clone, a hash as a frozen walk through its fields, to which each change hands the field that it
// is about to change. A long string is shared until it is overwritten.
//
// # Where things are
//
//	object.go                     Object, Header, State, how objects are allocated
//	string.go, hash.go, zset.go   the types of Redis; fields.go, frozen.go: the fields of a hash
//	token.go, fixed.go, counter.go, packed.go   the states of limiters
//	fits.go                       which effects fit which objects
//	save.go                       objects as effects, for snapshots
//	weight.go, content.go, digest.go   memory, DUMP and RESTORE, DEBUG DIGEST
package object
