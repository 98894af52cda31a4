// Package effect has the kinds of changes of the keyspace. Logs and snapshots consist of them.
//
// An Effect is one change of state, as a result: absolute times, final values, the state of a
// limiter after a call. Applying it needs no clock, no configuration and no algorithm. Package
// object says which effects fit which objects, package engine creates and applies them, and package
// persistence writes them to disk. An effect points into whatever a call has in its hands:
// requests, replies, keys. So it is valid only while it is applied; the engine encodes it then, and
// a journal gets nothing but these bytes.
//
//	RL.SLIDE k 10 1s   ->  AddHits{k, Lo: 2, Hits: {At: now, N: 1}, ExpireAt: now+1000}
//	INCR n             ->  String{n, "8", ExpireAt: as it was}
//	EXPIRE k -1        ->  Delete{k}
//
// The numbers of the kinds are file format: they are written out in effect.go and never renumbered.
// A new kind gets the next number, and is added to effect.go, codec.go, engine/apply.go and
// object/fits.go. The codec has one table, kindFields, with the fields of each kind; encoder and
// decoder both use it.
//
// # Where things are
//
//	effect.go  Effect and its kinds
//	codec.go   the bytes of an effect in a log
//	packed.go  the shorter form of the most frequent ones
//	sum.go     the digest of a state
//	key.go     the name of a key with its hash
//	hits.go    the hits that a call on a sliding window records
//	names.go   the names of hits: <ms>-<seq>, or by the id of the call
package effect
