package lists

import "rlserver/resp/command"

func init() {
	const flags = command.Write | command.NoScript | command.Blocking
	source, target := command.Key("RW access delete", 1), command.Key("RW insert", 2)
	command.Register("list",
		blockingPops("blpop", false), blockingPops("brpop", true),
		&command.Command{Name: "blmove", Arity: 6, Flags: flags | command.DenyOOM,
			Keys: []command.KeySpec{source, target}, Run: blmove},
		&command.Command{Name: "brpoplpush", Arity: 4, Flags: flags | command.DenyOOM,
			Keys: []command.KeySpec{source, target},
			Run:  func(c *command.Call) error { return moveOrWait(c, mover{fromRight: true}) }},
		&command.Command{Name: "blmpop", Arity: -5, Flags: command.Write | command.Blocking | command.MovableKeys,
			Keys: []command.KeySpec{command.KeysCounted("RW access delete", 2)}, Run: blmpop},
	)
}

// blockingPops declares BLPOP or BRPOP key [key ...] timeout.
func blockingPops(name string, right bool) *command.Command {
	return &command.Command{Name: name, Arity: -3, Flags: command.Write | command.NoScript | command.Blocking,
		Keys: []command.KeySpec{{Access: "RW access delete", Begin: 1, Last: -2, Step: 1}},
		Run:  func(c *command.Call) error { return c.PopOne(popper{n: 1, right: right}) }}
}

func blmove(c *command.Call) error {
	ends := command.Args{List: c.Args.List[2:4]}
	m := mover{fromRight: ends.Either("RIGHT", "LEFT"), toRight: ends.Either("RIGHT", "LEFT")}
	if ends.Err != nil {
		return ends.Err
	}
	return moveOrWait(c, m)
}

// moveOrWait moves an element from the first key of the call to the second, or waits for one up to
// the timeout that is its last word.
func moveOrWait(c *command.Call, m mover) error {
	timeout := command.Args{List: c.Args.List[len(c.Args.List)-1:]}
	wait := timeout.Timeout()
	if timeout.Err != nil {
		return timeout.Err
	}
	return c.PopOrWait(c.Keys, 1, wait, m)
}

func blmpop(c *command.Call) error { return c.PopMany("LEFT", "RIGHT", popsMany) }
