package server

import (
	"rlserver/engine"
	"rlserver/resp/command"
)

func init() {
	command.Register("server",
		&command.Command{Name: "function", Arity: -2, Group: "scripting", Subs: []*command.Command{
			{Name: "flush", Arity: -2, Flags: command.NoScript | command.Write, Run: functionFlush},
			command.HelpSince("7.0.0"),
		}},
		&command.Command{Name: "module", Arity: -2, Subs: []*command.Command{
			command.HelpSince("5.0.0"),
			{Name: "list", Arity: 2, Flags: command.Admin | command.NoScript, Run: moduleList},
		}},
		&command.Command{Name: "role", Arity: 1,
			Flags: command.NoScript | command.Loading | command.Stale | command.Fast, Categories: "admin dangerous",
			Run: role},
		&command.Command{Name: "wait", Arity: 3, Flags: command.NoScript, Group: "generic", Categories: "connection",
			Run: waitForReplicas},
	)
}

const (
	errFunctionFlush = engine.Error("ERR FUNCTION FLUSH only supports SYNC|ASYNC option")
	errWaitTimeout   = engine.Error("ERR timeout is not an integer or out of range")
	errWaitNegative  = engine.Error("ERR timeout is negative")
)

// functionFlush handles FUNCTION FLUSH [ASYNC | SYNC]. It replies OK: clients flush at their start,
// and there are no functions.
func functionFlush(c *command.Call) error {
	switch {
	case c.Args.Left() > 1:
		return c.WrongSubcommandArity()
	case c.Args.More() && !c.Args.Word("ASYNC") && !c.Args.Word("SYNC"):
		return errFunctionFlush
	}
	return c.ReplyOK(nil)
}

// moduleList replies that there are no modules.
func moduleList(c *command.Call) error {
	c.Reply.Array(0)
	return nil
}

// role handles ROLE: a primary without replicas, at offset 0.
func role(c *command.Call) error {
	c.Reply.Array(3)
	c.Reply.BulkString("master")
	c.Reply.Integer(0)
	c.Reply.Array(0)
	return nil
}

// waitForReplicas handles WAIT numreplicas timeout. It replies at once: replies to the calls before
// it have waited for a majority in a cluster, and a server alone has no replicas.
func waitForReplicas(c *command.Call) error {
	c.Args.Integer()
	if c.Args.IntegerOr(errWaitTimeout) < 0 {
		c.Args.Fail(errWaitNegative)
	}
	if err := c.Args.End(); err != nil {
		return err
	}
	return c.ReplyCount(c.Env.Cluster.View().Acknowledged(), nil)
}
