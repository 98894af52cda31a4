package resp

import "rlserver/engine"

func init() {
	register(
		&command{name: "module", arity: -2, group: "server", since: "4.0.0", complexity: "Depends on subcommand.",
			summary: "A container for module commands",
			subs: []*command{
				{name: "help", arity: 2, flags: loading | stale, group: "server", since: "5.0.0", complexity: "O(1)",
					summary: "Show helpful text about the different subcommands", run: help},
				{name: "list", arity: 2, flags: admin | noScript, group: "server", since: "4.0.0", tips: "nondeterministic_output_order",
					complexity: "O(N) where N is the number of loaded modules.",
					summary:    "List all modules loaded by the server", run: moduleList},
			}},
		&command{name: "role", arity: 1, flags: noScript | loading | stale | fast, group: "server", since: "2.8.12", complexity: "O(1)",
			categories: "admin dangerous", summary: "Return the role of the instance in the context of replication", run: role},
		&command{name: "wait", arity: 3, flags: noScript, group: "generic", since: "3.0.0", complexity: "O(1)",
			categories: "connection", tips: "request_policy:all_shards response_policy:agg_min",
			syntax:  "numreplicas timeout",
			summary: "Wait for the synchronous replication of all the write commands sent in the context of the current connection", run: waitForReplicas},
	)
}

const (
	errWaitTimeout  = engine.Error("ERR timeout is not an integer or out of range")
	errWaitNegative = engine.Error("ERR timeout is negative")
)

// moduleList answers that there are no modules.
func moduleList(c *call) error {
	c.reply.array(0)
	return nil
}

// role answers that this is a primary without replicas, which has sent nothing to any.
func role(c *call) error {
	c.reply.array(3)
	c.reply.bulkString("master")
	c.reply.integer(0)
	c.reply.array(0)
	return nil
}

// waitForReplicas handles WAIT numreplicas timeout. There are no replicas and none will come: the answer is known before the timeout.
func waitForReplicas(c *call) error {
	c.args.integer()
	if c.args.integerOr(errWaitTimeout) < 0 {
		c.args.fail(errWaitNegative)
	}
	if err := c.args.end(); err != nil {
		return err
	}
	c.reply.integer(0)
	return nil
}
