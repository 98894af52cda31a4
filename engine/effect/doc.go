// Package effect is the vocabulary of changes: what a log, a snapshot and a replica hold.
//
// An Effect is one change of state, as a result: absolute times, final values, the state of a
// limiter after a call. Applying it needs no clock, no configuration and no algorithm. Package
// object says which effects fit which objects, package engine makes and applies them, and package
// persistence writes them down.
//
//	RL.SLIDE k 10 1s   ->  AddHits{k, Lo: 2, Hits: {At: now, N: 1}, ExpireAt: now+1000}
//	INCR n             ->  String{n, "8", ExpireAt: as it was}
//	EXPIRE k -1        ->  Delete{k}
//
// The numbers of the kinds are file format: they are written out in effect.go and never renumbered.
// A new kind takes the next number; effect.go, engine/apply.go, object/fits.go and the codec of
// package persistence name it.
//
// # Where things are
//
//	effect.go  Effect and its kinds
//	key.go     the name of a key with its hash
//	hits.go    what a call on a sliding window records
//	names.go   how hits are named, <ms>-<seq> or by the id of the call
package effect
