// Package zsets has the handlers of the commands on sorted sets.
//
// A handler runs under the locks of all its keys. A zset.View or zset.Members belongs to the
// keyspace and is valid until they are released. A missing key is an empty sorted set; a key of
// another type is WRONGTYPE.
//
// Unions, intersections and differences of large sets work on clones, after the locks are released.
// A command that stores the result then takes the locks again and stores it if no source has
// changed meanwhile. If one has, it tries again, the last time under the locks. See Storing.
//
// A blocking pop on empty keys returns command.ErrWait, see package waitqueue.
package zsets
