package command

import (
	"strings"

	"rlserver/engine"
)

// ErrNoScripts refuses calls that need Lua. Some clients retry a script endlessly if the error
// begins with ERR unknown command or contains NOSCRIPT; this one does neither.
const ErrNoScripts = engine.Error("ERR this server runs no Lua scripts and no functions: use its own commands, " +
	"which are atomic, such as RL.SLIDE, RL.TOKEN, RL.FIXED, RL.LEASE or RL.ALL; COMMAND LIST names them all")

// scripting are the commands of Redis that need Lua, by their full names. They are not in the
// command table, so that COMMAND does not list them.
var scripting = map[string]bool{
	"eval": true, "eval_ro": true, "evalsha": true, "evalsha_ro": true, "fcall": true, "fcall_ro": true,
	"script|load": true, "script|debug": true, "function|load": true,
}

// NeedsScripting reports whether an unknown command, or subcommand of a container, needs Lua.
func NeedsScripting(container string, word []byte) bool {
	if len(word) > 16 {
		return false
	}
	name := strings.ToLower(string(word))
	if container != "" {
		name = container + "|" + name
	}
	return scripting[name]
}
