package scripting

import (
	"rlserver/resp/command"
	"rlserver/resp/lua"
)

const evalFlags = command.NoScript | command.Stale | command.SkipMonitor | command.NoMandatoryKeys |
	command.MovableKeys | command.AnyKeys

// eval returns the declaration of EVAL or one of its relatives.
func eval(name string, flags command.Flags, access string, script lookup, head text) *command.Command {
	flags |= evalFlags
	return &command.Command{Name: name, Arity: -3, Flags: flags,
		Keys:    []command.KeySpec{command.KeysCounted(access, 2)},
		FlagsOf: func(env *command.Env, words [][]byte) command.Flags { return declared(flags, head(env, words[1])) },
		Prepare: prepare(script), Ahead: compileAhead,
		Run: func(c *command.Call) error { return run(c, script) }}
}

// text returns the text of the script of a call; "": it is unknown.
type text func(env *command.Env, word []byte) string

func textItself(_ *command.Env, word []byte) string { return string(word) }

func textOf(env *command.Env, name []byte) string {
	if sha, ok := shaOf(name); ok {
		if s, _ := known(env, string(sha[:])); s != nil {
			return s.Text
		}
	}
	return ""
}

// declared returns the flags of a call. As in Redis those count that the script declares, if it
// declares any, and not whether the command may change something.
func declared(flags command.Flags, text string) command.Flags {
	switch f, err := lua.DeclaredFlags(text); {
	case err != nil || f&lua.Declared == 0:
		return flags
	case f&lua.NoWrites != 0:
		return flags &^ command.MayChange
	}
	return flags | command.MayChange
}

func init() {
	command.Register("scripting",
		eval("eval", command.MayChange, "RW access update", read, textItself),
		eval("evalsha", command.MayChange, "RW access update", find, textOf),
		eval("eval_ro", command.Readonly, "RO access", read, textItself),
		eval("evalsha_ro", command.Readonly, "RO access", find, textOf),
		&command.Command{Name: "script", Arity: -2, Subs: []*command.Command{
			{Name: "exists", Arity: -3, Flags: command.NoScript, Merge: mergeExists, Run: scriptExists},
			{Name: "flush", Arity: -2, Flags: command.NoScript | command.MayChange, Merge: mergeAll,
				Run: scriptFlush},
			command.HelpSince("5.0.0"),
			{Name: "kill", Arity: 2, Flags: command.NoScript | command.AllowBusy, Merge: mergeKill,
				Run: scriptKill},
			{Name: "load", Arity: 3, Flags: command.NoScript | command.Stale | command.MayChange, Merge: mergeAll,
				Ahead: compileAhead, Run: scriptLoad},
			{Name: "show", Arity: 3, Flags: command.NoScript, Since: "8.0.0", Complexity: "O(1)", Syntax: "sha1",
				Summary: "Show the text of a script in the script cache.", Merge: mergeShow, Run: scriptShow},
		}},
	)
}
