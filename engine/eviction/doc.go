// Package eviction says what a key is worth when memory runs short.
//
// A Policy gives each key a worth; the least goes. It goes by the key's deadline, by its access
// clock (24 bits: the second of the last access, or a Frequency if the policy counts accesses), and
// by the Pressure on a limiter: how near its last call was to being denied. A limiter that denies
// is never evicted under the policy ratelimit, because evicting it admits calls that it would deny.
//
// None of this is in the log or in a snapshot: no decision depends on it. Which keys are looked at,
// and when, is package engine's, see its evict.go.
//
//	policy.go     the policies and what a key is worth to each
//	frequency.go  the logarithmic counter of accesses, as in Redis
//	pressure.go   how near a limiter is to denying
package eviction
