// Package command declares commands and runs their handlers: the table, the call that a handler
// works on, its arguments, and what COMMAND, COMMAND DOCS, HELP and docs/COMMANDS.md say of them.
//
// # One declaration per command
//
// A Command is the only declaration of a command, and every field of it is used. Arity rejects
// calls, Keys choose what is hashed and locked, Flags decide whether the engine may change
// anything, Merge and Refused say what a cluster makes of a call, Syntax is parsed into the tree
// of COMMAND DOCS, from which redis-cli makes its hints, and Documentation writes
// docs/COMMANDS.md. What Redis' manual says of its commands is recorded from Redis 7.0.15, and a
// test compares the declarations with the recording.
//
// # How to add a command
//
//  1. Find the package of its family below resp/commands, or add one and import it in
//     resp/table.go.
//  2. Register an entry in the init function of a file there: of a command of Redis, name, arity,
//     flags and key specifications as in Redis. The rest is recorded from Redis; a command of our
//     own has syntax, summary, complexity and version as well.
//  3. Write the handler: take the arguments from Call.Args, call one method of Call.Tx, write to
//     Call.Reply. Add a method to engine.Tx if the command does something new.
//  4. Record a transcript of the replies from Redis, and add an example to docs_examples.md.
//  5. Run `make docs`.
//
// # What a handler may do
//
// A handler runs under the locks of the keys that its specifications name, and no others: with
// WholeKeyspace under all, with Stepwise or OwnLocks under none. So a reply may be copied straight
// from the keyspace. It must not take those locks again, block, or read a file.
//
//   - Args keeps the first error, so that parsing needs no error handling: check Args.End once,
//     before anything is changed.
//   - A handler that returns an error has its reply discarded, and the error is sent instead. It
//     must have changed nothing.
//   - A handler writes exactly one reply, or returns ErrWait to wait; it then runs again later, see
//     package waitqueue.
//   - Words and arguments are in buffers that the next read overwrites: what is kept must be
//     copied.
//   - A common call allocates nothing between its words and its reply.
//
// # Calls that take long
//
// Call.Postpone has a part of the reply written after the locks are released: LCS, SORT, DUMP,
// large collections, and the counting of long bitmaps. Command.Prepare runs before the locks are
// taken: RESTORE reads its payload there, and memory is freed for strings that a call enlarges.
// EXEC skips it. Work of more than milliseconds asks Call.Unwanted whether the client has gone.
//
// # Left out
//
// There are no modules and no functions, so the table does not change after the init functions have
// run.
package command
