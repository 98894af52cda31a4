// Package lua runs the scripts of EVAL: Lua 5.1 as in Redis 7.0.15, by gopher-lua, in bounded time
// and memory.
//
// # The way of a script
//
//	Read          reads the flags of its first line, and compiles it
//	Take          takes an idle State, an interpreter with the libraries of Redis
//	State.Run     sets KEYS and ARGV, and runs the script: redis.call passes words to Host.Do,
//	              and makes Lua values of the reply
//	State.Write   makes a reply of the result
//	State.Release gives the State back
//
// Package scripting, the Host, is what knows commands, keys and users. This package knows none.
//
// # What makes it Redis' Lua
//
// gopher-lua is used as it is. What differs in it is made equal from outside: the compiler changes
// the syntax tree (concatenation, assignments to tables, arithmetic on strings), the libraries are
// functions of our own where those of gopher-lua differ, and messages of errors are rewritten to
// name variables as Lua does. docs/COMPATIBILITY.md lists what is left.
//
// # Limits
//
// The context of a State is its watch: the interpreter asks it before each instruction of a script
// that has loops or functions, so that it counts instructions and looks at the clock. What a
// library builds is charged before it is built. When what was charged reaches a limit, the values
// that the script can reach are measured. A script that takes more memory than it may, or that
// SCRIPT KILL has ended, panics out of all its calls, also of pcall. Patterns count their steps as
// instructions.
//
// Scripts is what all running scripts share: their memory together, and a turn, which a script that
// takes long holds for some milliseconds, so that all such scripts use one processor.
//
// # Why a State can be used again
//
// A new one costs 350 µs. Globals and libraries are read-only, KEYS and ARGV are filled anew, and
// all that a script can reach from its own values ends with it. So values of a run are reused by
// the next one. A State is dropped if its script was ended,
// or has made it large; not if all that the script did was to ask for one value that is too large.
package lua
