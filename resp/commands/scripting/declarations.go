package scripting

import (
	"rlserver/resp/command"
)

const evalFlags = command.NoScript | command.Stale | command.SkipMonitor | command.NoMandatoryKeys |
	command.MovableKeys | command.AnyKeys

// eval returns the declaration of EVAL or one of its relatives.
func eval(name string, flags command.Flags, access string, script lookup) *command.Command {
	return &command.Command{Name: name, Arity: -3, Flags: evalFlags | flags,
		Keys:    []command.KeySpec{command.KeysCounted(access, 2)},
		Prepare: prepare(script), Run: func(c *command.Call) error { return run(c, script) }}
}

func init() {
	command.Register("scripting",
		eval("eval", command.MayChange, "RW access update", read),
		eval("evalsha", command.MayChange, "RW access update", find),
		eval("eval_ro", command.Readonly, "RO access", read),
		eval("evalsha_ro", command.Readonly, "RO access", find),
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
