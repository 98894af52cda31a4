// Package keys has the handlers of the commands on keys of any type: expiry, renaming, scanning,
// DUMP and RESTORE, SORT, and OBJECT.
//
// A handler runs under the locks of the keys that the call names. Exceptions: KEYS and SCAN hold
// one shard at a time, DBSIZE holds none, and RANDOMKEY, FLUSHDB, FLUSHALL and SWAPDB hold all, as
// does SORT with patterns that look up other keys. Within a transaction all of them run under the
// locks of the transaction.
//
// DUMP and SORT collect what they need under the locks, and write their reply after the locks are
// released. RESTORE decodes its payload before they are taken.
package keys
