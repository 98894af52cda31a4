// Package engine is the keyspace and everything that can happen to it: a state machine in memory.
//
// # The model
//
// A key holds an object: a string, a hash, a sorted set or the state of a limiter, with or without
// a deadline. Keys are spread over shards by the top bits of their hash. Each shard has one lock,
// and behind it a dict per database. A call goes
//
//	k := e.Key(name)                   hashes the name, once: for the shard and the place in it
//	tx.Begin(now, db, keys, writing)   locks the shards of the keys, in shard order
//	d, err := tx.Decide(&limit, cost)  look up, validate, decide, apply
//	pos := tx.End()                    hands the effects to the journal, unlocks
//
// A connection uses one Tx for all its calls, so that a decision allocates nothing. Calls that are
// known in advance can share one hold of the locks: Join takes further locks as far as they are
// free, and Prefetch fetches from memory what the calls will look at, all at once. With keys that
// no cache holds, that fetching is most of the cost of a decision.
//
// Each shard knows the journal position of its last change, and End returns the latest of those
// that were held. A reply waits for every change that it may report, so that it never reports what
// a crash takes back.
//
// # One way to change state
//
// Every change is an Effect and is made by one function, Engine.apply: a live call, the replay of a
// log and the load of a snapshot all use it, so a log can miss nothing. Effects are results, not
// requests: absolute times, final scores, final limiter state. Replaying them needs no clock, no
// configuration and no algorithm:
//
//	RL.SLIDE k 10 1s   ->  effect.AddHits{k, Lo: 2, Hits: {At: now, N: 1}, ExpireAt: now+1000}
//	INCR n             ->  effect.String{n, "8", ExpireAt: as it was}
//	EXPIRE k -1        ->  effect.Delete{k}
//
// A Tx validates first and changes afterwards: nothing fails after its first effect, so nothing is
// ever rolled back. All effects of one call go to the journal in one piece, under the locks: per
// key, the order in the log is the order of the changes.
//
// # Types
//
// What a key holds is an object.Object. Package engine/object has the types, and says what each
// must have; package engine/effect has the kinds of changes.
//
// # Time
//
// The engine has no clock (package clock is the server's). Each call passes now, and a shard
// remembers the latest time it has seen: a call that read the clock earlier but got the lock later
// happens at that later time. So time never runs backward for a key, whatever the order of the
// callers, and the names of hits, `<ms>-<seq>`, are unique: the sequence continues when hits are
// refunded, and when a log is replayed. After a start from a snapshot it begins anew, so calls must
// bring a later time than the snapshot's, as package clock does.
//
// The effects of a run, applied in order, rebuild its state, whatever the machine, the Seed and the
// number of shards. Running the same calls again at the same times gives the same answers and state
// only if nothing else decides: the same Seed and number of shards (names of hits, SCAN order), the
// same edition of the time zone database, no eviction, no random members, and the same order of the
// calls of several connections.
//
// An expired key is hidden from every reader at once. It is deleted by the next change under its
// name, or by the Sweeper, which needs no index of deadlines: each bucket of a dict knows a time
// before which nothing in it expires, and is visited only after that. As in Redis, a key exists up
// to and including the millisecond of its deadline.
//
// # Policies
//
// A policy is a named limit; Check decides a call against several. Policies belong to no database.
// Their map is changed under all locks, so a call that holds any lock sees the same policies
// throughout, and the order of changes in the log is the order in which calls met them. The
// definition is kept as text in one canonical form: it is what is set, logged and reported, and is
// parsed in one place.
//
// A policy whose algorithm changes leaves keys behind that the new algorithm cannot use. They are
// deleted under all locks, at the moment of the change. Deleting them in steps while the old
// algorithm decides does not work: calls admitted meanwhile would have to be recorded twice, and a
// waiter whose key is deleted would be admitted by a limit that no longer exists.
//
// # Snapshots
//
// A Snapshot is all policies and keys as they were at one moment, visited in steps while calls go
// on. It walks through each dict of that moment in the order of hashes, and Engine.apply asks it
// before each change. If a key is changed that the walk has not reached, what it holds is saved
// first and its name noted, so that the walk skips it:
//
//	place   0                      cursor                        2^32
//	        |  walked: may change  |  to be walked, except names  |
//	                                  that changes have saved
//
// Splits and merges of buckets move no key across the cursor. FLUSHDB and SWAPDB change no object:
// the walk goes on over the dict that it began with. Small objects become effects under their
// shard's lock, some 64 keys at a time. A large sorted set is cloned, a long string is shared until
// it is overwritten, and a large hash gets a walk of the same kind through its fields. Encoding and
// disk writes need no lock. A snapshot and the log from its moment on give the state, except for
// keys that had expired by then.
//
// # Where things are
//
//	engine.go       Engine, keys, counters, errors
//	shard.go        a lock and what it guards; counts per database; the keys denied most
//	tx.go           one call or several: locks, lookup, apply, prefetch
//	apply.go        the one function that changes what keys hold, live and in replay
//	dump.go         DUMP, RESTORE and the digests of keys
//	watch.go        reports changes to a key, for WATCH and for waiters
//	snapshot.go     all keys at one moment, while calls go on
//	memory.go       what keys weigh               evict.go   which are evicted, and why
//	expire.go       deadlines, the Sweeper; limiter state that lies in the future, moved back
//	background.go   the sweeping and evicting beside the calls
//	algorithms.go   the table of the limiters, and refunds; the arithmetic is in engine/limit
//	algorithm_*.go  one limiter each: what its keys hold, what it decides and records
//	limits.go       a call against one limit, or several at once, all or nothing
//	policy*.go      named limits: how they change, and calls decided by several
//	strings.go, bits.go, hashes.go, zsets.go, keys.go: the operations by family
//
// and in packages of their own, which know no shards and no locks:
//
//	engine/effect    what can change              engine/object    what keys hold
//	engine/eviction  what a key is worth          engine/limit     the arithmetic of limiters
//	engine/denials   the keys that are denied most
//	engine/rule      the text of limits           zset, dict, bitmap   data structures
//
// The fields of limits and policies are parsed in engine/rule.
//
// # Memory
//
// The weight of each shard's keys is counted when objects are added, removed, grow or shrink; each
// object knows its weight without being walked. A test compares it with the heap. The engine is
// given a budget and keeps to it when MakeRoom is called: that samples a few neighbours in hash
// order, under one shard's lock, and evicts the one that is worth least to the eviction policy. An
// eviction is an effect like any other. What the policy goes by, when a key was used and how near a
// limiter was to denying, is in spare bits of the objects and in no effect: the log has what was
// evicted, not why. A limiter that denies is never evicted under the policy ratelimit.
//
// # Why package dict
//
// Go's map would hash each name a second time, has no cursor, and knows no deadlines. Package dict
// takes the hash as it is and walks in hash order, so that SCAN neither misses a key that stays nor
// returns one twice. It splits bucket by bucket, so that growth never pauses a shard, and keeps the
// times that the Sweeper goes by.
//
// # Left out on purpose
//
// No rollback, no replication state, no statistics beyond a few counters per shard and two per
// policy. Replies are formatted and requests parsed in package resp. Nothing calls back up.
package engine
