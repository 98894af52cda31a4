// Package engine is the keyspace and everything that can happen to it: a state machine in memory.
//
// # The model
//
// A key holds an object: a string, a hash, a sorted set, a token bucket or a fixed window, with or without a deadline. Keys are spread
// over shards by the top bits of their hash; each shard has one lock, and in it a dict per database. A call goes
//
//	k := e.Key(name)                     the only hash of the name: it chooses the shard and the place in it
//	tx.Begin(now, db, keys, writing)     locks the shards of the keys, in shard order
//	d, err := tx.Decide(&limit, cost)    look up · validate · decide · apply
//	pos := tx.End()                      effects to the journal, unlock
//
// and a connection uses one Tx for all its calls, so that a decision allocates nothing. Calls that are known in advance can follow each other under one
// hold: Join takes further locks as far as they are free, and Prefetch has what the calls will look at fetched from memory while none of them waits for it yet.
// With keys that no cache holds, that fetching is most of what a decision takes.
//
// Each shard knows the position in the journal of its last change, and End returns the latest of those
// that were held: a reply waits for every change that it may tell of, so that it never speaks of what
// a crash takes back.
//
// # One way to change state
//
// Every change is an Effect and is made by one function, Engine.apply. A live call, the replay of a log and the load of a snapshot all
// come through it, so a log can miss nothing. Effects are results, not requests: absolute times, final scores, final limiter
// state. Replaying them asks no clock, no configuration and no algorithm:
//
//	RL.SLIDE k 10 1s   ->  EffectHits{k, Lo: 2 lapsed hits go, Hits: {At: now, Seq: 0, N: 1}, ExpireAt: now+1000}
//	INCR n             ->  EffectString{n, "8", ExpireAt: as it was}
//	EXPIRE k -1        ->  EffectDelete{k}
//
// A Tx validates first and changes afterwards: nothing fails after its first effect, so there is nothing to roll back. All effects of
// one call go to the journal in one piece, under the locks: the order in a log is the order of the changes, per key.
//
// A type is a struct that implements the interface object. What every type must have is a method there:
// weight, save (for snapshots), content (for DUMP), digest, encoding, clone. A type without one of them
// does not compile.
//
// # Time
//
// The engine owns no clock (package clock is the server's). It is handed now with each call, and a shard remembers the latest
// it has seen: a call that read the clock earlier but got the lock later happens at that later time. So time never runs backward
// for a key, whatever the callers' order, and the names of hits, `<ms>-<seq>`, are unique for ever: the sequence goes on when hits
// are given back, and when a log is replayed. After a start from a snapshot it begins anew, so calls must bring a later time than
// the snapshot's, as package clock's does.
//
// The effects of a run, applied in order, give its state again, whatever the machine, the Seed and the number of shards. To run the
// same calls again with the same times gives the same answers and state only as far as nothing else decides: with the same Seed and
// number of shards (names of hits, SCAN order), the same edition of the time zone database, no eviction, no random members, and the
// same order of the calls of several connections.
//
// An expired key is hidden from every reader at once. What deletes it is the next change under its name, or the Sweeper, which
// finds it without an index of deadlines: each bucket of a dict knows a time before which nothing in it falls due, and is looked
// at only after that. Redis' rule holds: a key is there up to and including the millisecond of its deadline.
//
// # Policies
//
// A policy is a limit that has a name; Check holds a call against several. They are of no database, and stand in a map that is changed under all locks,
// so whoever holds one lock sees the same policies as long as it does, and the order of changes in the log is the order in which calls met them. The definition
// is kept as text, in one canonical form: what is set, logged and told is the same, and is read in one place.
//
// A policy whose algorithm changes leaves keys behind that its successor could not use. They are deleted under all locks, at the moment at which the
// successor takes over. To do that in steps, while the former decides, was tried: it takes notes of who is admitted meanwhile, and who was waiting
// finds his key empty and is admitted by a limit that is no more.
//
// # Snapshots
//
// A Snapshot is all policies and keys as they were at one moment, handed out bit by bit while calls go on. It walks through each dict of that moment in
// the order of hashes, and Engine.apply asks it before each change. If a key is changed that the walk has not come to, what it holds
// is handed out first and its name noted, so that the walk leaves it out:
//
//	place   0                      cursor                        2^32
//	        |  walked: may change  |  to be walked, but for what  |
//	                                  changes have overtaken
//
// Splits and merges of buckets move no key across the cursor. FLUSHDB and SWAPDB change no object: the walk goes on over the dict that it
// began with. Small objects become effects under their shard's lock, some 64 keys at a time; a large sorted set is cloned, a long string
// shared until it is written over, and a large hash gets a walk through its fields of the same kind. The encoding and the disk are
// no matter of locks. A snapshot and the log from its moment on give the state, except that keys which had expired by then are missing.
//
// # Where things are
//
//	engine.go   Engine, keys and shards        tx.go      one call, or several: locks, lookup, apply
//	effect.go   what can change                apply.go   the one function that changes it
//	object.go   what a key can hold            shard.go   a lock and what is behind it
//	prefetch.go what several calls need, fetched side by side
//	watch.go    who wants to know of changes to a key, for WATCH and for those who wait for one
//	snapshot*.go  all keys at one moment, while calls go on
//	memory.go   what keys weigh                evict.go   which go when they weigh too much; standing.go, frequency.go: what is known of them
//	digest.go   what tells whether two keyspaces are equal; reload.go makes all keys anew
//	denials.go  which keys are denied most
//	algorithms.go   the table of the rate limiters, over the pure arithmetic of engine/limit; how they are written is in engine/rule
//	algorithm_*.go  each of them: what its keys hold, what it decides and records
//	limits.go   a call against one limit     refunds.go  what was used, given back
//	moveback.go state whose time is ahead, taken back to the present
//	all.go      several limits at once, all or nothing
//	policy*.go  named limits: how they change, and calls held against several
//	hash.go     the fields of a hash
//	bits.go     strings, bit by bit
//	dump.go     what a key holds, taken out and put back
//	strings.go, hashes.go, zsets*.go, keys.go, expire.go, scan.go: the operations by family
//
// # Memory
//
// What each shard's keys weigh is counted where objects come, go, grow and shrink, from what each object knows of itself without being walked
// through; a test holds it against what the heap says. The engine is given a budget. It keeps to it when MakeRoom is called, which looks at a
// few neighbours in hash order, under one shard's lock, and evicts the one that is worth least to the policy: an effect as any. What a
// policy goes by, when a key was used and how near a limiter was to denying, is in spare bits of the objects, and in no effect: who
// replays the effects is told what went, not why. A limiter that is denying does not go under the policy ratelimit, whatever comes.
//
// # A dict of our own
//
// Go's map would hash each name a second time, cannot be walked by a cursor, and says nothing about deadlines. The dict package takes the hash
// as it is, walks in hash order, so that SCAN neither misses a key that stays nor shows one twice, splits bucket by bucket, so that
// growth never pauses a shard, and keeps the marks for the Sweeper.
//
// # Left out on purpose
//
// No rollback, no replication state, no statistics beyond a few counters per shard and two per policy. No reply is formatted here and
// no request parsed: those are package resp's. Nothing calls back up.
package engine
