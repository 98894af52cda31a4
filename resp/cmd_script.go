package resp

import (
	"strings"

	"rlserver/engine"
)

func init() {
	register(
		&command{name: "function", arity: -2, group: "scripting", since: "7.0.0", complexity: "Depends on subcommand.",
			summary: "A container for function commands",
			subs: []*command{
				{name: "flush", arity: -2, flags: noScript | write, group: "scripting", since: "7.0.0",
					complexity: "O(N) where N is the number of functions deleted",
					tips:       "request_policy:all_shards response_policy:all_succeeded",
					syntax:     "[ASYNC | SYNC]", summary: "Deleting all functions", run: functionFlush},
				{name: "help", arity: 2, flags: loading | stale, group: "scripting", since: "7.0.0", complexity: "O(1)",
					summary: "Show helpful text about the different subcommands", run: help},
			}},
		&command{name: "script", arity: -2, group: "scripting", since: "2.6.0", complexity: "Depends on subcommand.",
			summary: "A container for Lua scripts management commands",
			subs: []*command{
				{name: "exists", arity: -3, flags: noScript, group: "scripting", since: "2.6.0",
					complexity: "O(N) with N being the number of scripts to check (so checking a single script is an O(1) operation).",
					tips:       "request_policy:all_shards response_policy:agg_logical_and",
					syntax:     "sha1 [sha1 ...]", summary: "Check existence of scripts in the script cache.", run: scriptExists},
				{name: "flush", arity: -2, flags: noScript, group: "scripting", since: "2.6.0",
					complexity: "O(N) with N being the number of scripts in cache",
					tips:       "request_policy:all_nodes response_policy:all_succeeded",
					syntax:     "[ASYNC | SYNC]", summary: "Remove all the scripts from the script cache.", run: scriptFlush},
				{name: "help", arity: 2, flags: loading | stale, group: "scripting", since: "5.0.0", complexity: "O(1)",
					summary: "Show helpful text about the different subcommands", run: help},
				{name: "kill", arity: 2, flags: noScript | allowBusy, group: "scripting", since: "2.6.0", complexity: "O(1)",
					tips:    "request_policy:all_shards response_policy:one_succeeded",
					summary: "Kill the script currently in execution.", run: scriptKill},
			}},
	)
}

const (
	errFunctionFlush      = engine.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
	errFunctionFlushArity = engine.Error("ERR unknown subcommand or wrong number of arguments for 'FLUSH'. Try FUNCTION HELP.")
	errScriptFlush        = engine.Error("ERR SCRIPT FLUSH only support SYNC|ASYNC option")
	errNotBusy            = engine.Error("NOTBUSY No scripts in execution right now.")

	// Clients send a script again, some of them for ever, when the error begins with ERR unknown command or has the word that says
	// that a script is not cached.
	errNoScripts = engine.Error("ERR this server runs no Lua scripts and no functions: use its own commands, which are atomic, such as " +
		"RL.SLIDE, RL.TOKEN, RL.FIXED, RL.LEASE or RL.ALL; COMMAND LIST names them all")
)

// scripting are the commands of Redis that need Lua, by their full names. They are not in the table: nothing that works is told of them.
var scripting = map[string]bool{
	"eval": true, "eval_ro": true, "evalsha": true, "evalsha_ro": true, "fcall": true, "fcall_ro": true,
	"script|load": true, "script|debug": true, "function|load": true,
}

// needsScripting tells whether a word, of a container if it is a subcommand, is one of them. It is asked about commands that are unknown.
func needsScripting(container string, word []byte) bool {
	if len(word) > 16 {
		return false
	}
	name := strings.ToLower(string(word))
	if container != "" {
		name = container + "|" + name
	}
	return scripting[name]
}

// functionFlush handles FUNCTION FLUSH [ASYNC | SYNC].
func functionFlush(c *call) error {
	if c.args.left() > 1 {
		return errFunctionFlushArity
	}
	return c.flushNothing(errFunctionFlush)
}

// scriptFlush handles SCRIPT FLUSH [ASYNC | SYNC].
func scriptFlush(c *call) error { return c.flushNothing(errScriptFlush) }

// flushNothing answers clients that begin with an empty server: there are no scripts and no functions.
func (c *call) flushNothing(wrongOption engine.Error) error {
	if c.args.more() && (c.args.left() > 1 || !c.args.word("ASYNC") && !c.args.word("SYNC")) {
		return wrongOption
	}
	c.reply.ok()
	return nil
}

// scriptExists handles SCRIPT EXISTS sha1 [sha1 ...].
func scriptExists(c *call) error {
	c.reply.array(c.args.left())
	for c.args.more() {
		c.args.next()
		c.reply.flag(false)
	}
	return nil
}

func scriptKill(*call) error { return errNotBusy }
