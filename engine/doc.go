// Package engine is the keyspace: a state machine in memory.
//
// # The model
//
// A key holds an object: a string, a hash, a sorted set or the state of a limiter, with or without
// a deadline. Keys are spread over shards by the top bits of their hash. Each shard has one lock,
// and behind it a table per database. A call looks like this:
//
//	k := e.Key(name)                   hashes the name once, for the shard and the table
//	tx.Begin(now, db, keys, writing)   locks the shards of the keys, in shard order
//	d, err := tx.Decide(&limit)        looks up, validates, decides, applies
//	pos := tx.End()                    passes the effects to the journal, unlocks
//
// A connection uses one Tx for all its calls, so that a decision allocates nothing. Calls that are
// known in advance can share one hold of the locks: Join takes further locks if they are free, and
// Prefetch loads the objects of all keys at once. With keys that are not in the CPU's caches,
// loading them is most of the cost of a decision.
//
// Each shard knows the journal position of its last change, and End returns the latest position of
// the shards that were locked. A reply waits for every change that it may report, so it never
// reports a change that a crash undoes.
//
// # One way to change state
//
// Every change is an Effect and is made by one function, Engine.apply: live calls, the replay of a
// log and the load of a snapshot all use it, so no change is missing from the log. Effects are
// results, not requests: absolute times, final scores, final limiter state. Replaying them needs no
// clock, no configuration and no algorithm:
//
//	RL.SLIDE k 10 1s   ->  effect.AddHits{k, Lo: 2, Hits: {At: now, N: 1}, ExpireAt: now+1000}
//	INCR n             ->  effect.String{n, "8", ExpireAt: as it was}
//	EXPIRE k -1        ->  effect.Delete{k}
//
// An effect points into requests, replies and keys, which change. So it is encoded at the moment it
// is applied, and what the keys keep of it they copy.
//
// A Tx validates first and changes afterwards: nothing fails after its first effect, so there is no
// rollback. All effects of one call go to the journal together, under the locks: for each key, the
// order in the log is the order of the changes.
//
// # Types
//
// The value of a key is an object.Object. Package engine/object has the types, and says what each
// must implement; package engine/effect has the kinds of changes.
//
// # Time
//
// The engine has no clock (package clock is the server's). Each call passes now, and a shard
// remembers the latest time it has seen: a call that read the clock earlier but got the lock later
// happens at that later time. So time never runs backward for a key, in whatever order the callers
// arrive, and the names of a key's hits, `<ms>-<seq>`, are unique: no number of a millisecond is
// used again after hits were refunded, or a log was replayed (package effect: Sequence). A
// snapshot does not have what was used, so after a start from one calls must bring a later time
// than its own, as package clock does.
//
// The effects of a run, applied in order, rebuild its state, whatever the machine, the Seed and the
// number of shards. Running the same calls again at the same times gives the same answers and state
// only if nothing else decides: the same Seed and number of shards (names of hits, SCAN order), the
// same edition of the time zone database, no eviction, no random members, and the same order of the
// calls of several connections.
//
// An expired key is hidden from every reader at once. It is deleted by the next change of its name,
// or by the Sweeper, which needs no index of deadlines: each bucket of a dict has a time before
// which nothing in it expires, and is visited only after that. As in Redis, a key exists up to and
// including the millisecond of its deadline.
//
// # Snapshots
//
// Engine.apply has a snapshot that is being taken keep what a change replaces, see package
// snapshot. A snapshot and the log after it give the state, except for keys that had expired at the
// time of the snapshot.
//
// # Where things are
//
//	engine.go       Engine, keys, errors         shard.go   a lock and what it guards
//	tx.go           one call or several: locks, lookup, apply, prefetch
//	held.go         calls that take long: they keep their keys, but not the locks
//	apply.go        the one function that changes what keys hold, live and in replay
//	dump.go         DUMP, RESTORE, digests       watch.go   who hears of changes to keys
//	snapshot.go     begins and ends snapshots, see package snapshot
//	memory.go       the memory of keys           evict.go   which keys are evicted
//	expire.go       deadlines, the Sweeper; MoveBack for state in the future
//	algorithms.go   the table of the limiters, and refunds; the arithmetic is in engine/limit
//	algorithm_*.go  one limiter each: what its keys hold, what it decides and records
//	reservations.go calls that reserve a part of a limit, and settle it
//	limits.go       a call against one limit, or several at once, all or nothing
//	policy*.go      named limits: how they change, and calls decided by several
//	strings.go, bits.go, zsets.go, elements.go (lists, sets, hashes), keys.go: the operations
//
// # Left out on purpose
//
// No rollback, no replication state, no statistics beyond a few counters per shard and two per
// policy. Replies are formatted and requests parsed in package resp.
package engine
