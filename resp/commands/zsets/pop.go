package zsets

import (
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/wire"
	"rlserver/zset"
)

func init() {
	const flags = command.Write | command.NoScript | command.Fast | command.Blocking
	command.Register("sorted-set",
		command.OnKey("zpopmin", -2, command.Write|command.Fast, "RW access delete",
			func(c *command.Call) error { return zpop(c, false) }),
		command.OnKey("zpopmax", -2, command.Write|command.Fast, "RW access delete",
			func(c *command.Call) error { return zpop(c, true) }),
		&command.Command{Name: "zmpop", Arity: -4, Flags: command.Write | command.MovableKeys,
			Keys: []command.KeySpec{command.KeysCounted("RW access delete", 1)}, Run: zmpop},
		command.OnKey("zrandmember", -2, command.Readonly, "RO access", zrandmember),
		&command.Command{Name: "bzpopmin", Arity: -3, Flags: flags,
			Keys: []command.KeySpec{{Access: "RW access delete", Begin: 1, Last: -2, Step: 1}},
			Run:  func(c *command.Call) error { return c.PopOne(zpopper{n: 1}) }},
		&command.Command{Name: "bzpopmax", Arity: -3, Flags: flags,
			Keys: []command.KeySpec{{Access: "RW access delete", Begin: 1, Last: -2, Step: 1}},
			Run:  func(c *command.Call) error { return c.PopOne(zpopper{n: 1, greatest: true}) }},
		&command.Command{Name: "bzmpop", Arity: -5, Flags: command.Write | command.Blocking | command.MovableKeys,
			Keys: []command.KeySpec{command.KeysCounted("RW access delete", 2)}, Run: bzmpop},
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

// zpopper pops members for a call: their number, from which end, and the form of the reply.
type zpopper struct {
	n        int64
	greatest bool
	pairs    bool // reply with the name of the key and pairs, as ZMPOP does; otherwise flat
}

// Pop removes members from the first of the keys that has any, and replies with them; found is
// false if none has.
func (p zpopper) Pop(tx *engine.Tx, keys []engine.Key, r *wire.Reply) (found bool, err error) {
	return tx.ZPop(keys, p.n, p.greatest, func(from engine.Key, popped zset.Members) {
		if p.pairs {
			r.Array(2)
			r.Bulk(from.Name)
			write(r, popped, true, true)
			return
		}
		r.Array(3)
		r.Bulk(from.Name)
		for member, score := range popped.All() {
			r.Bulk(member)
			r.Double(score)
		}
	})
}

func bzmpop(c *command.Call) error { return c.PopMany("MIN", "MAX", popsMany) }

// popsMany returns what pops n members for ZMPOP and BZMPOP.
func popsMany(greatest bool, n int64) command.Popper {
	return zpopper{n: n, greatest: greatest, pairs: true}
}
