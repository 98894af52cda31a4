// Package scripting has the handlers of EVAL, EVALSHA and SCRIPT, which run scripts in Lua.
//
// Package lua is the interpreter. This package is between it and the executor: each redis.call is a
// call like any other, with the permission of the script's user, the flags, and statistics of its
// own. All of them run in the transaction of the EVAL, under the locks of the keys that it
// declares: a script is atomic, its changes are one record, and it sees one time. A call that uses
// another key gets an error that names it. With lua-undeclared-keys the script holds all locks.
//
// A script that runs for longer than a millisecond keeps its keys, but not the locks of their
// shards, see engine.Tx.Hold: it takes them for each of its calls. After lua-time-limit other calls
// on its keys get BUSY, and SCRIPT KILL can end it if it has changed nothing.
//
// A script is compiled before locks are taken; EXEC compiles those of all its calls, of 4 MB at
// most if they are new.
//
// Scripts are part of what an engine keeps, see package script: EVALSHA works after a restart and
// on a node that begins to lead. In a cluster each group has the scripts that ran on it; SCRIPT
// LOAD gives one to all groups.
//
// Left out: FUNCTION and FCALL.
package scripting
