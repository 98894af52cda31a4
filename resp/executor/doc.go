// Package executor runs calls. Whoever brings one hands it to this package: a connection with a
// pipeline, EXEC, a call that has waited for its key, another node, a command on the whole
// keyspace, a script, a test. What every call needs is here, once.
//
//	Prepared.Resolve   words -> a Prepared call: the command, its arity, the lengths of its words
//	Runner.Admit       may it run now? permission, flags, memory, disk. No lock is held
//	  (the caller chooses the partition and locks the keys: engine.Tx.Begin)
//	Runner.Run         the handler, under these locks: the reply, and what it has changed
//	  (the caller unlocks: engine.Tx.End returns the position that the reply waits for)
//	Runner.Measure     statistics, slow log, LATENCY, MONITOR
//
// A Runner runs the calls of one origin, one after another. RunAll runs a list of calls under locks
// that are already held: a transaction.
//
// # What comes in and out
//
// In: a prepared call, the user (Call.Account), and an engine.Tx of the partition (Call.Tx) that
// holds the locks of the call's keys. A handler that touches another key panics in the engine. A
// panic of a handler costs its own call an error, and neither the process nor the calls beside it.
//
// Out: the reply, appended to Call.Reply; the effects, which the engine has encoded as it applied
// them; and the position from Tx.End.
//
// # Left out
//
// The login and the state of a connection, MULTI's queue, the order of replies and the choice of a
// partition are those of package resp. Waiting is package waitqueue's, which uses Retry.
package executor
