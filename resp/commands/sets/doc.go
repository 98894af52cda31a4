// Package sets has the handlers of the commands on sets.
//
// A handler runs under the locks of its keys: it reads a view of the set, which stays valid until
// the next change, and changes it with Tx.Insert and Tx.SRem. A missing key is an empty set; a key
// of another type is WRONGTYPE.
//
// The reply of a large set is written after the locks are released, from the members as they were.
// So are SINTER, SUNION and SDIFF of large sets, unless few members of one have to be looked up in
// the others. With STORE they run under the locks, and say that they take long.
//
// A set of integers that Redis would keep sorted is sorted when it is written.
package sets
