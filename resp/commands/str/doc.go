// Package str has the handlers of the commands on strings, which include bitmaps and numbers.
//
// A handler runs under the locks of its keys. A value that it reads belongs to the keyspace and is
// valid until they are released. A missing key is an empty string, or 0 as a number; a key of
// another type is WRONGTYPE.
//
// For a command that makes a string much larger than its arguments, keys are evicted in
// Command.Prepare, before the locks are taken. LCS, and the counting of long bitmaps, run after the
// locks are released.
//
// Numbers are formatted as Redis does, floating point numbers as C's long double: see package
// grammar.
package str
