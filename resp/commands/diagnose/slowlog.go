package diagnose

import (
	"rlserver/engine"
	"rlserver/resp/command"
)

func init() {
	const operator = command.Admin | command.Loading | command.Stale
	command.Register("server",
		&command.Command{Name: "slowlog", Arity: -2, Subs: []*command.Command{
			{Name: "get", Arity: -2, Flags: operator, Tips: "request_policy:all_nodes nondeterministic_output",
				Run: slowlogGet},
			command.HelpSince("6.2.0"),
			{Name: "len", Arity: 2, Flags: operator,
				Tips: "request_policy:all_nodes response_policy:agg_sum nondeterministic_output", Run: slowlogLen},
			{Name: "reset", Arity: 2, Flags: operator, Run: slowlogReset},
		}},
	)
}

const errSlowlogCount = engine.Error("ERR count should be greater than or equal to -1")

func slowlogGet(c *command.Call) error {
	count := int64(10)
	if c.Args.More() {
		count = c.Args.IntegerOr(errSlowlogCount)
		if count < -1 {
			c.Args.Fail(errSlowlogCount)
		}
	}
	if c.Args.Left() > 0 {
		return c.WrongSubcommandArity()
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	calls := c.Env.Slowlog.Last(count)
	c.Reply.Array(len(calls))
	for i := range calls {
		call := &calls[i]
		c.Reply.Array(6)
		c.Reply.Integer(call.ID)
		c.Reply.Integer(call.Time)
		c.Reply.Integer(call.Took.Microseconds())
		c.ReplyStrings(call.Args)
		c.Reply.BulkString(call.Address)
		c.Reply.BulkString(call.Name)
	}
	return nil
}

func slowlogLen(c *command.Call) error {
	return c.ReplyCount(c.Env.Slowlog.Len(), nil)
}

func slowlogReset(c *command.Call) error {
	c.Env.Slowlog.Reset()
	return c.ReplyOK(nil)
}
