package zsets

import (
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/zset"
)

func init() {
	command.Register("sorted-set",
		command.OnKey("zpopmin", -2, command.Write|command.Fast, "RW access delete",
			func(c *command.Call) error { return zpop(c, false) }),
		command.OnKey("zpopmax", -2, command.Write|command.Fast, "RW access delete",
			func(c *command.Call) error { return zpop(c, true) }),
		&command.Command{Name: "zmpop", Arity: -4, Flags: command.Write | command.MovableKeys,
			Keys: []command.KeySpec{command.KeysCounted("RW access delete", 1)}, Run: zmpop},
		command.OnKey("zrandmember", -2, command.Readonly, "RO access", zrandmember),
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
			write(&c.Reply, popped, true, false)
		}
	})
	if err == nil && !found {
		c.Reply.Array(0)
	}
	return err
}

func zmpop(c *command.Call) error {
	keys, greatest, n := c.Args.Pops("MIN", "MAX")
	if err := c.Args.End(); err != nil {
		return err
	}

	found, err := popsMany(greatest, n).Pop(c.Tx, keys, &c.Reply)
	if err == nil && !found {
		c.Reply.NullArray()
	}
	return err
}

func zrandmember(c *command.Call) error {
	k := c.Args.Key()
	if !c.Args.More() {
		z, err := c.Tx.ZSet(k)
		member, ok := z.Random(c.Random)
		return c.ReplyOrNull(member, ok, err)
	}
	n, withScores := c.Args.Picks("WITHSCORES")
	z, err := open(c, k)
	if err != nil {
		return err
	}
	var picked zset.Members
	if n > zset.MaxWritten && !z.Writable() {
		return engine.ErrManyWritten
	}
	if n >= 0 {
		picked = z.Sample(c.Random, n)
	} else {
		picked = z.Pick(c.Random, int(-n))
	}

	writeMembers(&c.Reply, picked, withScores)
	return nil
}
