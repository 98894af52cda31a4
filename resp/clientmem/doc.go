// Package clientmem counts the memory that clients hold, so that none of them can exhaust the
// server.
//
// # Model
//
// Each connection has an [Account]. It is a sum of parts: input that is not yet a whole command,
// the arguments of a large command, a reply under construction, unread replies, a queued
// transaction, watched keys, and the copy of a waiting call. Each account belongs to one [Pool],
// each pool to the server's [Pools]:
//
//	Account.Set(Input, 70_000)
//	   part  Input     0 -> 70_000
//	   sum           500 -> 70_500     of the account
//	     Pool.Bytes       + 70_000     of Unauthenticated, Normal or Exempt; has a limit
//	       Pools.Bytes    + 70_000     of all clients; its peak is kept
//
// The normal pool is limited by maxmemory-clients, the pool of clients that have not authenticated
// by preauth-memory. When a pool is over its limit, the server closes its largest clients. So
// clients that have not logged in cannot evict clients that have. CLIENT NO-EVICT moves a client to
// the exempt pool, which has no limit.
//
// Memory of clients never evicts a key: it does not count towards maxmemory.
//
// # Invariants
//
//   - Memory is counted where it changes, never measured: the sums are always exact, and return to
//     zero when the clients are gone.
//   - One goroutine at a time sets a part. Any goroutine may read it.
//   - A closed account holds nothing and stays closed. Set then returns false, and the caller
//     stops.
//   - A client whose commands arrive whole and whose replies are read leaves its account at zero
//     and touches no shared counter.
//
// # Locks
//
// An account's lock is a leaf, except for the short lock of a [RecentMax]. So Set may be called
// under any other lock of the server. The package counts and never calls out: the server closes
// clients, one search at a time (Pools.Evicting).
//
// # Left out on purpose
//
// The few KB that every connection takes ([ConnectionSize]) are in no pool: maxclients bounds them.
// Sizes are those of the buffers' capacity, not of the allocator's size classes.
package clientmem
