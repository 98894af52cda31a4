// Package resp is the server that clients talk to: Redis' protocol in, one decision of the engine, Redis' protocol out.
//
// # The way of a request
//
//	socket
//	  -> gate            accepts, sets keepalive, wraps the socket in a guard
//	  -> guard           framing.go, inline.go: finds the commands and their words; limits before and after AUTH; idle timeout; drain
//	  -> redcon          accepts, serves each connection by a goroutine, is told of each batch of commands and calls us
//	  -> session.serve   takes the commands from the guard and collects their replies
//	  -> execute         dispatch.go: table, arity, authentication; pipeline.go: hash and lock the keys, those of the next calls too
//	  -> handler         cmd_<family>.go: parse · operate · reply
//	  -> engine.Tx       decides and changes, see package engine
//	  -> session.flush   waits for the journal once for the whole batch, then sends the replies with one write
//	  -> guard, sender   keep what the client does not take at once
//	socket
//
// # One declaration per command
//
// A command is an entry in a table (command.go), and everything in the entry is used: the arity rejects, the key specifications choose what is
// hashed and locked, the write flag decides whether the engine may change anything, the syntax is parsed (syntax.go) into the tree that
// COMMAND DOCS tells and redis-cli makes its hints of, and all of it becomes docs/COMMANDS.md (docs.go). What a test holds against
// Redis 7.0.15 (testdata/commands-7.0.15.jsonl) is therefore what runs. Adding a command is an entry and a handler in one file, and a
// method of engine.Tx if it does something new.
//
// A handler is three paragraphs. It takes its arguments from a cursor (args.go) whose first error sticks, so that parsing has no error
// handling of its own; calls one method of the Tx; and says what to reply (reply.go), not how: the differences between RESP2
// and RESP3 are known there alone. It runs under the locks of its keys and nothing else, so a reply may be copied straight out of the keyspace.
// What takes long is done after the locks are let go, see postponed.go: names are matched with patterns there, whose steps are counted (glob.go).
// Large ranges are read from clones, and what ZUNIONSTORE and its like store is worked out of clones and stored if the sources have not
// changed meanwhile (zset_store.go).
//
// # What always holds
//
//   - Every command leaves one reply, unless CLIENT REPLY or SHUTDOWN says otherwise, or the end comes while it waits: a handler that errs or
//     panics has what it wrote taken back.
//   - No reply leaves before the journal has what it acknowledges, and what it tells of changes by others. A failed journal closes the
//     connection without one; later reads of what it does not have are answered MISCONF.
//   - Only the connection's own goroutine touches a session, but for its profile and the guard's counters, which are atomic.
//   - What a handler keeps, it copies: the words of a call lie in buffers that the next read overwrites.
//   - The common calls allocate nothing between the words and the reply; a test counts.
//   - Whatever a client sends, the process goes on.
//
// # Calls that come together
//
// A pipeline's calls are run up to 16 at a time under one hold of all their shards, if they are fast and leave the session as it is. What for, and why nobody can tell, is in
// pipeline.go. Sixteen single keys in one hold and one call with sixteen keys are the same to the engine.
//
// # Calls that take long
//
// A handler may take along what its answer needs, and have it written when no lock is held any more (postponed.go): LCS, SORT, DUMP, and the counting
// of long bitmaps. What can be done before the locks are taken stands in command.prepare: RESTORE reads its payload there, and room is made for
// strings that a few words stretch far.
//
// # Calls that wait
//
// A limiter's call with WAIT and a blocking pop stand in a line per key (line.go), in order of arrival:
//
//	handler -> admit, popOrWait   not now, but maybe in time: errHeld
//	runTogether -> hold           under the locks that denied it: copies the call, joins the line of each key
//	        -> await              End · replies before it are sent · sleeps in guard.pause, in a read of its socket
//	change of the key -> Tx.End -> engine.Watch -> line.changed ┐ under the key's lock: line.serve answers those whose turn it is,
//	the line's only timer       -> line.ring                    ┘ in order, each by its own handler at a desk of its own, and wakes them
//	        -> await              the answer goes out with the batch that follows
//
// So it does not matter when the system lets whose goroutine run: the order of the line is the order of admission, a pop is served before the
// call that filled the key lets go of it, as by Redis, and who cannot be served is not woken. Nothing runs while nothing changes. A call on
// several keys is tried when it is first in all its lines, with the locks of all. What is under which lock: a line and the places in it
// under that of its key, an answer under the waiter's own, which CLIENT UNBLOCK takes alone.
//
// Two clocks rule a wait (package clock). When a limiter admits is a moment of server time, which may jump forward: then all lines are looked at anew.
// When a timeout ends is measured by the monotonic clock, as is all that is a duration: idle times, ages, how often the log is written to.
//
// # Configuration
//
// Settings hold what can change while the server runs, as atomics that their users read at each turn; parameter.go is the table by which CONFIG
// knows them. CONFIG SET makes sense of all values before it puts the first into force. Parameters of Redis' for things that are not here
// have the value that says so, and refuse any other: an operator who asks for notifications must not be told OK.
//
// # Memory
//
// maxmemory limits what the keys weigh and the overhead of the process as it is measured after a collection (memory.go).
// Dispatch asks, before each command that may take memory, whether there is too much, and then evicts, or refuses it in Redis' words. It holds no
// lock then; a command that runs is not interrupted.
//
// What clients hold has bounds of its own, so no key is evicted for it. It is counted where it changes, part by part (held.go), never measured; the
// sum is compared with the bound of the client's pool (pool.go), and the client that holds most is closed. The count changes only when a
// session keeps something between batches or grows a large buffer: a client that sends whole commands and reads the replies touches no
// shared counter. A reply that is too large is cut off while it is written (reply.go), the call is carried out in full, and the client is closed. Unread
// replies make the commands of the client wait before they reach the hard limit (sender.go, output_limit.go).
//
// # What clients see of the disk
//
// Who keeps the state on disk is a Store (store.go), asked through its interface alone. Dispatch asks it, before each command that may change
// something, whether changes are refused (MISCONF), and the server itself whether the data is still being loaded (LOADING): EXEC stands for what is
// queued. Snapshots take the engine's locks, so nobody asks for one while holding any: within EXEC that, and telling the store of CONFIG SET, is put
// off until the transaction has ended (session.finish). A snapshot is at once what Redis calls a background save and a rewrite of the append
// only file: BGSAVE and BGREWRITEAOF begin the same, and INFO tells of it under both names.
//
// # The end
//
// Shutdown drains: the listeners close, each guard hands out the commands it has in full and then ends its stream, and the client is told so
// before the socket closes, so that no reply is lost to a reset. Who is not through when the time is up is cut off.
//
// # Transactions
//
// A transaction is a list of calls that dispatch has resolved but not run. EXEC locks the shards of all their keys and of the watched ones, and
// runs them one after the other: one time for all, one record in the journal. What looks at all shards in turn (SCAN, INFO) goes
// by the locks of all of them there. What takes locks of its own (RL.POLICY) cannot be queued.
//
// # Left out on purpose
//
// RESP3 is spoken after HELLO 3, as by Redis, and only by our replies: redcon knows RESP2 and never sees them. There are no users but
// the default one, no TLS, no scripts, no keyspace notifications. Client side caching is declined in the one way that all clients
// survive: CLIENT TRACKING ON OPTIN is taken, because some ask for it on each connection, and the CLIENT CACHING YES that would make us track a
// key is refused. INFO tells no figure that is not measured. DEBUG SLEEP holds its own connection, as there is no single thread to hold.
package resp
