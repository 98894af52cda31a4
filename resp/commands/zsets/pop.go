package zsets

import (
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/zset"
)

func init() {
	command.Register("sorted-set",
		&command.Command{Name: "zpopmin", Arity: -2, Flags: command.Write | command.Fast,
			Keys: command.OneKey("RW access delete"), Syntax: "key [count]", Since: "5.0.0",
			Complexity: "O(log(N)*M) with N being the number of elements in the sorted set, and M being the " +
				"number of elements popped.",
			Summary: "Remove and return members with the lowest scores in a sorted set",
			Run:     func(c *command.Call) error { return zpop(c, false) }},
		&command.Command{Name: "zpopmax", Arity: -2, Flags: command.Write | command.Fast,
			Keys: command.OneKey("RW access delete"), Syntax: "key [count]", Since: "5.0.0",
			Complexity: "O(log(N)*M) with N being the number of elements in the sorted set, and M being the " +
				"number of elements popped.",
			Summary: "Remove and return members with the highest scores in a sorted set",
			Run:     func(c *command.Call) error { return zpop(c, true) }},
		&command.Command{Name: "zmpop", Arity: -4, Flags: command.Write | command.MovableKeys,
			Keys:   []command.KeySpec{command.KeysCounted("RW access delete", 1)},
			Syntax: "numkeys key [key ...] <MIN | MAX> [COUNT count]", Since: "7.0.0",
			Complexity: "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of " +
				"elements in the sorted set, and M being the number of elements popped.",
			Summary: "Remove and return members with scores in a sorted set", Run: zmpop},
		&command.Command{Name: "zrandmember", Arity: -2, Flags: command.Readonly, Keys: command.OneKey("RO access"),
			Syntax: "key [count [WITHSCORES]]", Since: "6.2.0",
			Complexity: "O(N) where N is the number of elements returned",
			Summary:    "Get one or multiple random elements from a sorted set", Tips: "nondeterministic_output",
			Run: zrandmember},
	)
}

// zpop handles ZPOPMIN and ZPOPMAX key [count].
func zpop(c *command.Call, greatest bool) error {
	keys := [1]engine.Key{c.Args.Key()}
	counted, n := c.Args.More(), int64(1)
	if c.Args.Left() > 1 {
		return engine.ErrSyntax
	}
	if counted {
		n = c.Args.IntegerFrom(0, command.ErrNotPositive)
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	found, err := c.Tx.ZPop(keys[:], n, greatest, func(_ engine.Key, popped zset.Members) {
		if counted {
			writeMembers(&c.Reply, popped, true)
		} else {
			writeMemberScores(&c.Reply, popped)
		}
	})
	if err != nil {
		return err
	}

	if !found {
		c.Reply.Array(0)
	}
	return nil
}

// zmpop handles ZMPOP numkeys key [key ...] MIN | MAX [COUNT count].
func zmpop(c *command.Call) error {
	keys, greatest, n := c.Args.Pops("MIN", "MAX")
	if err := c.Args.End(); err != nil {
		return err
	}

	found, err := popsMany(greatest, n).Pop(c.Tx, keys, &c.Reply)
	if err != nil {
		return err
	}

	if !found {
		c.Reply.NullArray()
	}
	return nil
}

// zrandmember handles ZRANDMEMBER key [count [WITHSCORES]].
func zrandmember(c *command.Call) error {
	k := c.Args.Key()
	if !c.Args.More() {
		return zrandmemberOne(c, k)
	}
	n, withScores := c.Args.Picks("WITHSCORES")
	if err := c.Args.End(); err != nil {
		return err
	}

	z, err := c.Tx.ZSet(k)
	if err != nil {
		return err
	}
	var picked zset.Members
	if n >= 0 {
		picked = z.Sample(c.Random, n)
	} else {
		picked = z.Pick(c.Random, int(-n))
	}

	writeMembers(&c.Reply, picked, withScores)
	return nil
}

func zrandmemberOne(c *command.Call, k engine.Key) error {
	z, err := c.Tx.ZSet(k)
	if err != nil {
		return err
	}
	member, ok := z.Random(c.Random)

	c.Reply.BulkOrNull(member, ok)
	return nil
}
