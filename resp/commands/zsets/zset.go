package zsets

import (
	"rlserver/engine"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
	"rlserver/resp/wire"
	"rlserver/zset"
)

func init() {
	const flags = command.Write | command.NoScript | command.Fast | command.Blocking
	command.Register("sorted-set",
		command.OnKey("zadd", -4, command.Write|command.DenyOOM|command.Fast, "RW update", zaddOptions{}.zadd),
		command.OnKey("zincrby", 4, command.Write|command.DenyOOM|command.Fast, "RW access update",
			zaddOptions{increment: true}.zadd),
		command.OnKey("zrem", -3, command.Write|command.Fast, "RW delete", zrem),
		command.OnKey("zcard", 2, command.Readonly|command.Fast, "RO", command.Length((*engine.Tx).ZSet)),
		command.OnKey("zscore", 3, command.Readonly|command.Fast, "RO access", zscore),
		command.OnKey("zmscore", -3, command.Readonly|command.Fast, "RO access", zmscore),
		&command.Command{Name: "zrank", Arity: -3, Flags: command.Readonly | command.Fast,
			Keys: command.OneKey("RO access"), Syntax: "key member [WITHSCORE]", Run: command.With(zrank, false)},
		&command.Command{Name: "zrevrank", Arity: -3, Flags: command.Readonly | command.Fast,
			Keys: command.OneKey("RO access"), Syntax: "key member [WITHSCORE]", Run: command.With(zrank, true)},
		command.OnKey("zscan", -3, command.Readonly, "RO access", zscan),
		command.OnKey("zpopmin", -2, command.Write|command.Fast, "RW access delete", command.With(zpop, false)),
		command.OnKey("zpopmax", -2, command.Write|command.Fast, "RW access delete", command.With(zpop, true)),
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

const (
	errNXAndXX     = engine.Error("ERR XX and NX options at the same time are not compatible")
	errGTLTAndNX   = engine.Error("ERR GT, LT, and/or NX options at the same time are not compatible")
	errOneMemberBy = engine.Error("ERR INCR option supports a single increment-element pair")
)

// zaddOptions holds the options before the scores.
type zaddOptions struct {
	conditions   zset.AddIf
	countChanged bool
	increment    bool
}

func parseZaddOptions(a *command.Args, o zaddOptions) zaddOptions {
	for {
		switch {
		case a.Word("NX"):
			o.conditions |= zset.IfNX
		case a.Word("XX"):
			o.conditions |= zset.IfXX
		case a.Word("GT"):
			o.conditions |= zset.IfGT
		case a.Word("LT"):
			o.conditions |= zset.IfLT
		case a.Word("CH"):
			o.countChanged = true
		case a.Word("INCR"):
			o.increment = true
		default:
			return o
		}
	}
}

// conflict returns the error of options that exclude each other. Redis checks them in this order.
func (o zaddOptions) conflict(words int) error {
	has := func(c zset.AddIf) bool { return o.conditions&c == c }
	switch {
	case words == 0 || words%2 != 0:
		return engine.ErrSyntax
	case has(zset.IfNX | zset.IfXX):
		return errNXAndXX
	case has(zset.IfNX|zset.IfGT) || has(zset.IfNX|zset.IfLT) || has(zset.IfGT|zset.IfLT):
		return errGTLTAndNX
	case o.increment && words > 2:
		return errOneMemberBy
	}
	return nil
}

// open ends the arguments, and returns the sorted set that a key holds.
func open(c *command.Call, k engine.Key) (zset.View, error) {
	if err := c.Args.End(); err != nil {
		return zset.View{}, err
	}
	return c.Tx.ZSet(k)
}

// zadd handles ZADD, and ZINCRBY, which is the same with INCR.
func (o zaddOptions) zadd(c *command.Call) error {
	k := c.Args.Key()
	o = parseZaddOptions(&c.Args, o)
	if err := o.conflict(c.Args.Left()); err != nil {
		return err
	}
	var few [8]zset.Member
	members := few[:0]
	for c.Args.More() {
		score := c.Args.Float()
		members = append(members, zset.Member{Score: score, Member: c.Args.Next()})
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	if o.increment {
		score, ok, err := c.Tx.ZIncrBy(k, o.conditions, members[0].Member, members[0].Score)
		if err == nil {
			writeScoreOrNull(&c.Reply, score, ok)
		}
		return err
	}
	added, changed, err := c.Tx.ZAdd(k, o.conditions, members)
	if o.countChanged {
		added += changed
	}
	return c.ReplyCount(added, err)
}

func zrem(c *command.Call) error {
	k := c.Args.Key()

	return c.ReplyCount(c.Tx.ZRem(k, c.Args.List))
}

func zscore(c *command.Call) error {
	z, err := c.Tx.ZSet(c.Args.Key())
	if err != nil {
		return err
	}

	score, ok := z.Score(c.Args.Next())
	writeScoreOrNull(&c.Reply, score, ok)
	return nil
}

func zmscore(c *command.Call) error {
	z, err := c.Tx.ZSet(c.Args.Key())
	if err != nil {
		return err
	}

	c.Reply.Array(c.Args.Left())
	for c.Args.More() {
		score, ok := z.Score(c.Args.Next())
		writeScoreOrNull(&c.Reply, score, ok)
	}
	return nil
}

// zrank handles ZRANK and ZREVRANK key member [WITHSCORE]. The option is from Redis 7.2; anything
// else in its place is a wrong number of arguments, as in 7.0.
func zrank(c *command.Call, fromGreatest bool) error {
	k, member := c.Args.Key(), c.Args.Next()
	withScore := c.Args.Word("WITHSCORE")
	if c.Args.More() {
		return c.WrongArity()
	}

	z, err := c.Tx.ZSet(k)
	if err != nil {
		return err
	}
	rank, score, ok := z.Rank(member, fromGreatest)

	switch {
	case withScore && ok:
		c.Reply.Array(2)
		c.Reply.Count(rank)
		c.Reply.Double(score)
	case withScore:
		c.Reply.NullArray()
	case ok:
		c.Reply.Count(rank)
	default:
		c.Reply.Null()
	}
	return nil
}

func zscan(c *command.Call) error {
	all := func(k engine.Key) (int, command.Scan, error) {
		z, err := c.Tx.ZSet(k)
		return z.Len(), func(cursor uint64, n int, visit func(command.Element)) (uint64, error) {
			if !z.Scannable(cursor, n) {
				return 0, engine.ErrManyWritten
			}
			return z.Scan(cursor, n, func(member []byte, score float64) {
				visit(command.Element{Name: string(member), Score: score})
			}), nil
		}, err
	}
	return c.ScanElements(false, all, func(r *wire.Reply, e command.Element) { writeBulkFloat(r, e.Score) })
}

// writeBulkFloat replies with a number as a bulk string, in RESP3 too.
func writeBulkFloat(r *wire.Reply, f float64) {
	var buf [32]byte
	r.Bulk(grammar.AppendFloat(buf[:0], f))
}

func writeScoreOrNull(r *wire.Reply, score float64, ok bool) {
	if ok {
		r.Double(score)
	} else {
		r.Null()
	}
}

// writeMembers replies with members, and with their scores if wanted: flat in RESP2, in pairs in
// RESP3.
func writeMembers(r *wire.Reply, m zset.Members, withScores bool) {
	write(r, m, withScores, withScores && r.RESP3)
}

// write replies with members, each followed by its score if wanted, or in a pair with it. It ends
// early if the reply is too large for its client.
func write(r *wire.Reply, m zset.Members, withScores, inPairs bool) {
	if withScores && !inPairs {
		r.Array(2 * m.Len())
	} else {
		r.Array(m.Len())
	}
	for member, score := range m.All() {
		if inPairs {
			r.Array(2)
		}
		r.Bulk(member)
		if withScores {
			r.Double(score)
		}
		if r.Truncated {
			break
		}
	}
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
