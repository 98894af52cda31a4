// Package lists has the handlers of the commands on lists.
//
// A handler runs under the locks of its keys: it reads a view of the list, which stays valid until
// the next change, and changes it with Tx.Insert and Tx.RemoveSpan. A long reply is written after
// the locks are released, from the runs that the view has kept. A missing key is an empty list; a
// key of another type is WRONGTYPE.
//
// Calls that search a long list hold its lock meanwhile and say that they take long. LREM removes
// what it finds from the end to the front, so that the ranks of what is left to remove stay valid.
//
// A blocking pop on empty keys returns command.ErrWait, see package waitqueue.
package lists
