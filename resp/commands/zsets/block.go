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
