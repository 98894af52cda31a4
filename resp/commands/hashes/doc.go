// Package hashes has the handlers of the commands on hashes.
//
// A handler runs under the lock of its key and calls one method of engine.Tx, or reads the hash,
// which belongs to the keyspace and stays valid until the lock is released. The reply of a large
// hash is written after that, from a clone. A missing key is an empty hash; a key of another type
// is WRONGTYPE.
//
// Left out: the expiry of single fields, which Redis has since 7.4.
package hashes
