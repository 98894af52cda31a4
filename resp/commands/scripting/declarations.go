package scripting

import (
	"rlserver/resp/command"
)

const (
	evalFlags = command.NoScript | command.Stale | command.SkipMonitor | command.NoMandatoryKeys |
		command.MovableKeys | command.AnyKeys
	evalSyntax = "numkeys [key [key ...]] [arg [arg ...]]"
	depends    = "Depends on the script that is executed."
)

// eval returns the declaration of EVAL or one of its relatives.
func eval(
	name, since, argument, summary string, flags command.Flags, access string, script lookup,
) *command.Command {
	return &command.Command{Name: name, Arity: -3, Flags: evalFlags | flags, Since: since, Complexity: depends,
		Keys: []command.KeySpec{command.KeysCounted(access, 2)}, Syntax: argument + " " + evalSyntax,
		Summary: summary, Prepare: prepare(script), Run: func(c *command.Call) error { return run(c, script) }}
}

func init() {
	const all = "RW access update"
	command.Register("scripting",
		eval("eval", "2.6.0", "script", "Execute a Lua script server side", command.MayChange, all, read),
		eval("evalsha", "2.6.0", "sha1", "Execute a Lua script server side", command.MayChange, all, find),
		eval("eval_ro", "7.0.0", "script", "Execute a read-only Lua script server side", command.Readonly, "RO access",
			read),
		eval("evalsha_ro", "7.0.0", "sha1", "Execute a read-only Lua script server side", command.Readonly,
			"RO access", find),
		&command.Command{Name: "script", Arity: -2, Subs: []*command.Command{
			{Name: "exists", Arity: -3, Flags: command.NoScript, Merge: mergeExists, Run: scriptExists},
			{Name: "flush", Arity: -2, Flags: command.NoScript | command.MayChange, Merge: mergeAll,
				Run: scriptFlush},
			command.HelpSince("5.0.0"),
			{Name: "kill", Arity: 2, Flags: command.NoScript | command.AllowBusy, Merge: mergeKill,
				Run: scriptKill},
			{Name: "load", Arity: 3, Flags: command.NoScript | command.Stale | command.MayChange, Merge: mergeAll,
				Run: scriptLoad},
			{Name: "show", Arity: 3, Flags: command.NoScript, Since: "8.0.0", Complexity: "O(1)", Syntax: "sha1",
				Summary: "Show the text of a script in the script cache.", Merge: mergeShow, Run: scriptShow},
		}},
	)
}
