package resp

import (
	"fmt"

	"rlserver/engine"
)

func init() {
	register(&command{name: "rl.top", arity: -1, flags: readonly | ownLocks, syntax: "[n]", group: "ratelimit", since: "1.0.0",
		complexity: "O(S) with S the counters there are, 64 for each of 64 shards at most",
		tips:       "nondeterministic_output",
		summary:    "Tells which keys of the database were denied most, and at least how often.",
		example: "> RL.TOKEN api:ann 1 1 1m\n1) (integer) 1\n2) (integer) 1\n3) (integer) 0\n4) (integer) 0\n5) (integer) 60000\n" +
			"> RL.TOKEN api:ann 1 1 1m\n1) (integer) 0\n2) (integer) 1\n3) (integer) 0\n4) (integer) 60000\n5) (integer) 60000\n" +
			"> RL.TOP\n1) \"api:ann\"\n2) (integer) 1",
		run: top})
}

// defaultTop is how many keys RL.TOP tells of unless it is told.
const defaultTop = 10

// top handles RL.TOP [n]. Keys and counts take turns, the highest first.
func top(c *call) error {
	n := int64(defaultTop)
	if c.args.more() {
		n = c.args.topCount(int64(c.env.engine.MostTop()))
	}
	if err := c.args.end(); err != nil {
		return err
	}

	list := c.env.engine.Top(c.db, int(n))
	c.tx.SeeAll()

	c.reply.array(2 * len(list))
	for _, d := range list {
		c.reply.bulk(d.Name)
		c.reply.integer(d.Count)
	}
	return nil
}

// topCount takes a number from 1 to most.
func (a *args) topCount(most int64) int64 {
	wrong := engine.Error(fmt.Sprintf("ERR n must be from 1 to %d", most))
	n := a.integerOr(wrong)
	if a.err == nil && (n < 1 || n > most) {
		a.fail(wrong)
	}
	return n
}
