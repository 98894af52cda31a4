// Package resp is the server: it speaks the Redis protocol with clients and runs their commands on
// the engine. It owns the connections and the order of the steps of a call. The steps themselves
// are in the packages below it, each with a doc.go of its own.
//
// # The way of a request
//
//	socket
//	  -> ports.Ports        Server.wrap: wraps the socket in a guard, with or without TLS;
//	                        Server.accept makes a session
//	  -> redcon             a goroutine per connection, whose first Read is session.serve; it
//	                        neither parses commands nor formats replies: package wire does
//	  -> session.serve      session.go: waits for commands until the connection ends
//	  -> wire.Guard         finds commands and their words; limits on input, timeouts, drain
//	  -> session.runBatch   takes the commands that have arrived one by one
//	  -> session.execute    dispatch.go: command table, arity, login, permission, memory, disk
//	  -> session.queue      transaction.go: within MULTI queues the command instead of running it
//	  -> session.begin      pipeline.go: finds the partition, locks the keys, also those of calls
//	                        that follow
//	  -> session.runGroup   pipeline.go: has package executor run the handlers
//	  -> session.await      session.go: sleeps if the call has to wait
//	  -> session.flush      session.go: waits once until the replies may be sent, see replies.go,
//	                        and sends them
//	  -> wire               queues replies that the client does not read at once
//	socket
//
// # What reaches what
//
// Imports go one way: resp imports all, commands/... import command, and none of these imports
// resp; CONTRIBUTING.md lists them. A handler in commands/... reaches the connection only by the
// interface Call.Conn. A handler in this package reaches the session by sessionOf, and the server
// through it.
//
// In this package a file is named after its content: transaction.go has MULTI, client_list.go has
// CLIENT LIST. INFO, MEMORY, CONFIG, DEBUG and SAVE are in resp/commands/server. The other files:
//
//	server.go            Server, its options and counters; the changes of CONFIG SET; SHUTDOWN
//	accept.go            connections from accept to end; protected mode, maxclients
//	session.go           session: one connection, from batch to replies
//	connection.go        AUTH, HELLO, PING, QUIT, RESET, SELECT
//	login.go             passwords; permissions; changes of the users
//	dispatch.go          one call, from its words to its reply
//	pipeline.go          several calls under the same locks
//	client_memory.go     the memory of a session; closes the client that holds most
//	figures.go           what others may read of a session; the figures of INFO and the metrics
//	maxmemory.go         the memory of the process, and what is left of it for keys
//	table.go             imports the families of commands
//	replies.go           what the replies of a batch wait for, and what is sent instead of them
//	placement.go         chooses the partition of a call: the only file that asks for a cluster
//	partition.go         what calls run on; in a cluster: where, and commands on all groups
//	passing.go           in a cluster: calls that other nodes run
//	node_session.go      in a cluster: sessions for other nodes, which forward calls
//
// # The order of locks
//
// A goroutine that holds a lock only takes locks that stand below it:
//
//  1. the shards of the engine, taken by Tx.Begin in the order of their numbers
//  2. the locks of package waitqueue
//  3. clientmem.Pools.Evicting: one goroutine at a time evicts clients
//  4. Server.mu: sessions and totals
//  5. the lock of a client's clientmem.Account
//  6. the locks of the journal: Tx.End passes it the effects under the shards
//
// Tx.End runs the callbacks of the watches on changed keys while it holds their shards: in the
// goroutine of the client that has changed the key, not in that of the client that waits. So one
// client's Tx.End runs another client's call and writes its reply, to buffers of the waiter. A
// handler, and all that it calls, therefore uses its command.Call and must not assume that it runs
// in the goroutine of its connection.
//
// Work that takes shards itself, or sleeps, runs when the call holds none:
// session.DeferUntilUnlocked. An example is a snapshot within EXEC.
// No goroutine waits for the journal while it holds a lock.
//
// # Invariants
//
//   - Each command leaves exactly one reply, except with CLIENT REPLY OFF or SKIP, SHUTDOWN, and a
//     connection that closes. A handler that fails or panics has its partial reply removed.
//   - No reply is sent before the partition says that the changes are kept which the reply
//     acknowledges or shows: a server alone when its log has them, a group when a majority has. If
//     that fails, an error takes the place of the reply.
//   - Only the connection's goroutine touches a session, except for atomic fields.
//   - The words of a call are in buffers that the next read overwrites: a handler copies the words
//     that it keeps.
//   - The common calls allocate nothing between the socket and the reply; a test counts.
//   - No input of a client ends the process.
//   - session.measure takes the times of calls, for the slow log, LATENCY and MONITOR.
//   - Each buffer, queue and list that a client can make grow has a limit.
//
// # Transactions
//
// A transaction is a list of calls that dispatch has resolved and not run. EXEC locks the shards of
// their keys and of the watched keys, and runs the calls in order, at one time and with one record
// in the journal. If a queued command looks at the whole keyspace (SCAN, INFO), EXEC locks all
// shards. Commands that take locks of their own (RL.POLICY) cannot be queued.
//
// # Memory
//
// maxmemory limits the keys and the overhead of the process, which is measured after each garbage
// collection. Dispatch evicts keys before each command that may take memory, and more for one with
// many or long words; it holds no lock then.
// It refuses the command with OOM if there is nothing to evict. A command that runs is not
// interrupted.
//
// The memory of clients is counted, not measured, and has limits of its own: no key is evicted for
// a client's buffers. If a pool of clients holds more than its limit, the largest of them are
// closed.
//
// # Disk
//
// storage.Store is the interface to persistence: whether changes are refused (MISCONF), snapshots,
// and their status. A snapshot is both what Redis calls a background save and a rewrite of the
// append only file: BGSAVE and BGREWRITEAOF start the same, and INFO shows it in the fields of
// both. While the data is being loaded, commands that need it get LOADING.
//
// # Shutdown
//
// Shutdown closes the listeners and drains the connections: each guard hands out the commands that
// have arrived in full, and then reports the end of the stream. The client can read the replies to
// these before its socket closes. When the context of Shutdown ends, the sockets that are left are
// closed at once.
//
// # Left out
//
// There is no REPLICAOF. INFO leaves out the fields of Redis that the server does not measure.
// Fields of absent features that monitoring programs expect have the constant that Redis shows if
// the feature is unused, mostly 0. DEBUG SLEEP blocks only its own connection.
package resp
