// Package eviction decides which key to evict when memory is short.
//
// A Policy assigns each key a worth; the key with the lowest worth is evicted. The worth depends on
// the key's deadline, its access clock (24 bits: the second of the last access, or a Frequency if
// the policy counts accesses), and the Pressure of a limiter: how close its last call was to a
// denial. The policy ratelimit never evicts a limiter that denies, because that would admit calls
// that it would deny.
//
// None of this is in the log or in a snapshot: no decision depends on it. Package sampling
// chooses the keys to compare.
//
// The weight of each shard's keys is counted when objects are added, removed, grow or shrink; each
// object knows its weight without being walked. A test compares it with the heap. The engine has a
// budget, which Tx.MakeRoom enforces: it samples a few neighbors in hash order, under one shard's
// lock, and evicts one of them, or a few. An eviction is an effect like any other: the log records
// evictions, not their reasons.
//
//	policy.go     the policies, and the worth of a key under each
//	frequency.go  the logarithmic counter of accesses, as in Redis
//	room.go       how much memory keys may take
//	pressure.go   how close a limiter is to a denial
package eviction
