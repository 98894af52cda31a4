package limits

import (
	"fmt"

	"rlserver/engine"
	"rlserver/resp/command"
)

func init() {
	command.Register("ratelimit",
		&command.Command{Name: "rl.top", Arity: -1, Flags: command.Readonly | command.OwnLocks, Syntax: "[n]",
			Since: "1.0.0", Complexity: "O(S) with S the number of counters, at most 64 for each of 64 shards",
			Tips: "nondeterministic_output",
			Summary: "Returns the keys of the database with the most denied calls, and a lower bound of " +
				"their number.", Run: top},
	)
}

// defaultTop is the number of keys that RL.TOP returns without n.
const defaultTop = 10

// top handles RL.TOP [n]. The reply alternates keys and counts, the highest count first.
func top(c *command.Call) error {
	n, most := int64(defaultTop), int64(c.Env.Engine.MaxTop())
	if c.Args.More() {
		wrong := engine.Error(fmt.Sprintf("ERR n must be from 1 to %d", most))
		if n = c.Args.IntegerFrom(1, wrong); n > most {
			c.Args.Fail(wrong)
		}
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	list := c.Env.Engine.Memory().Top(c.DB, int(n))
	c.Tx.SeeAll()

	c.Reply.Array(2 * len(list))
	for _, d := range list {
		c.Reply.Bulk(d.Name)
		c.Reply.Integer(d.Count)
	}
	return nil
}
