package resp

import (
	"rlserver/engine"
)

func init() {
	register(
		&command{name: "zadd", arity: -4, flags: write | denyOOM | fast, keys: []keySpec{key("RW update", 1)},
			syntax: "key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]", group: "sorted-set", since: "1.2.0",
			complexity: "O(log(N)) for each item added, where N is the number of elements in the sorted set.",
			summary:    "Add one or more members to a sorted set, or update its score if it already exists",
			run:        func(c *call) error { return zadd(c, zaddOptions{}) }},
		&command{name: "zincrby", arity: 4, flags: write | denyOOM | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key increment member", group: "sorted-set", since: "1.2.0",
			complexity: "O(log(N)) where N is the number of elements in the sorted set.",
			summary:    "Increment the score of a member in a sorted set",
			run:        func(c *call) error { return zadd(c, zaddOptions{increment: true}) }},
		&command{name: "zrem", arity: -3, flags: write | fast, keys: []keySpec{key("RW delete", 1)},
			syntax: "key member [member ...]", group: "sorted-set", since: "1.2.0",
			complexity: "O(M*log(N)) with N being the number of elements in the sorted set and M the number of elements to be removed.",
			summary:    "Remove one or more members from a sorted set",
			run:        zrem},
		&command{name: "zcard", arity: 2, flags: readonly | fast, keys: []keySpec{key("RO", 1)},
			syntax: "key", group: "sorted-set", since: "1.2.0",
			complexity: "O(1)",
			summary:    "Get the number of members in a sorted set",
			run:        zcard},
		&command{name: "zscore", arity: 3, flags: readonly | fast, keys: []keySpec{key("RO access", 1)},
			syntax: "key member", group: "sorted-set", since: "1.2.0",
			complexity: "O(1)",
			summary:    "Get the score associated with the given member in a sorted set",
			run:        zscore},
		&command{name: "zmscore", arity: -3, flags: readonly | fast, keys: []keySpec{key("RO access", 1)},
			syntax: "key member [member ...]", group: "sorted-set", since: "6.2.0",
			complexity: "O(N) where N is the number of members being requested.",
			summary:    "Get the score associated with the given members in a sorted set",
			run:        zmscore},
		&command{name: "zrank", arity: -3, flags: readonly | fast, keys: []keySpec{key("RO access", 1)},
			syntax: "key member [WITHSCORE]", group: "sorted-set", since: "2.0.0",
			complexity: "O(log(N))",
			summary:    "Determine the index of a member in a sorted set",
			run:        func(c *call) error { return zrank(c, false) }},
		&command{name: "zrevrank", arity: -3, flags: readonly | fast, keys: []keySpec{key("RO access", 1)},
			syntax: "key member [WITHSCORE]", group: "sorted-set", since: "2.0.0",
			complexity: "O(log(N))",
			summary:    "Determine the index of a member in a sorted set, with scores ordered from high to low",
			run:        func(c *call) error { return zrank(c, true) }},
		&command{name: "zscan", arity: -3, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key cursor [MATCH pattern] [COUNT count]", group: "sorted-set", since: "2.8.0",
			complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection..",
			summary:    "Incrementally iterate sorted sets elements and associated scores",
			tips:       "nondeterministic_output",
			run:        zscan},
	)
}

const (
	errNXAndXX     = engine.Error("ERR XX and NX options at the same time are not compatible")
	errGTLTAndNX   = engine.Error("ERR GT, LT, and/or NX options at the same time are not compatible")
	errOneMemberBy = engine.Error("ERR INCR option supports a single increment-element pair")
)

// zaddOptions are what stands before the scores.
type zaddOptions struct {
	conditions   engine.ZAddIf
	countChanged bool
	increment    bool
}

func (a *args) zaddOptions(o zaddOptions) zaddOptions {
	for {
		switch {
		case a.word("NX"):
			o.conditions |= engine.ZAddNX
		case a.word("XX"):
			o.conditions |= engine.ZAddXX
		case a.word("GT"):
			o.conditions |= engine.ZAddGT
		case a.word("LT"):
			o.conditions |= engine.ZAddLT
		case a.word("CH"):
			o.countChanged = true
		case a.word("INCR"):
			o.increment = true
		default:
			return o
		}
	}
}

// conflict tells what is wrong with the options together, in the order in which Redis looks.
func (o zaddOptions) conflict(words int) error {
	has := func(c engine.ZAddIf) bool { return o.conditions&c == c }
	switch {
	case words == 0 || words%2 != 0:
		return engine.ErrSyntax
	case has(engine.ZAddNX | engine.ZAddXX):
		return errNXAndXX
	case has(engine.ZAddNX|engine.ZAddGT) || has(engine.ZAddNX|engine.ZAddLT) || has(engine.ZAddGT|engine.ZAddLT):
		return errGTLTAndNX
	case o.increment && words > 2:
		return errOneMemberBy
	}
	return nil
}

// zadd handles ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...], and ZINCRBY key increment member, which
// to Redis is the same with INCR given.
func zadd(c *call, o zaddOptions) error {
	k := c.args.key()
	o = c.args.zaddOptions(o)
	if err := o.conflict(c.args.left()); err != nil {
		return err
	}
	var few [8]engine.ZMember
	members := few[:0]
	for c.args.more() {
		score := c.args.float()
		members = append(members, engine.ZMember{Score: score, Member: c.args.next()})
	}
	if err := c.args.end(); err != nil {
		return err
	}

	if o.increment {
		return zincrby(c, k, o.conditions, members[0])
	}
	added, changed, err := c.tx.ZAdd(k, o.conditions, members)
	if err != nil {
		return err
	}

	if o.countChanged {
		added += changed
	}
	c.reply.count(added)
	return nil
}

func zincrby(c *call, k engine.Key, conditions engine.ZAddIf, by engine.ZMember) error {
	score, ok, err := c.tx.ZIncrBy(k, conditions, by.Member, by.Score)
	if err != nil {
		return err
	}

	c.reply.scoreOrNull(score, ok)
	return nil
}

// zrem handles ZREM key member [member ...].
func zrem(c *call) error {
	k := c.args.key()

	removed, err := c.tx.ZRem(k, c.args.list)
	if err != nil {
		return err
	}

	c.reply.count(removed)
	return nil
}

// zcard handles ZCARD key.
func zcard(c *call) error {
	z, err := c.tx.ZSet(c.args.key())
	if err != nil {
		return err
	}

	c.reply.count(z.Len())
	return nil
}

// zscore handles ZSCORE key member.
func zscore(c *call) error {
	z, err := c.tx.ZSet(c.args.key())
	if err != nil {
		return err
	}

	c.reply.scoreOrNull(z.Score(c.args.next()))
	return nil
}

// zmscore handles ZMSCORE key member [member ...].
func zmscore(c *call) error {
	z, err := c.tx.ZSet(c.args.key())
	if err != nil {
		return err
	}

	c.reply.array(c.args.left())
	for c.args.more() {
		c.reply.scoreOrNull(z.Score(c.args.next()))
	}
	return nil
}

// zrank handles ZRANK and ZREVRANK key member [WITHSCORE]. The option came with Redis 7.2; anything else in its place is one argument too
// many, as before.
func zrank(c *call, fromGreatest bool) error {
	k, member := c.args.key(), c.args.next()
	withScore := c.args.word("WITHSCORE")
	if c.args.more() {
		return c.wrongArity()
	}

	z, err := c.tx.ZSet(k)
	if err != nil {
		return err
	}
	rank, score, ok := z.Rank(member, fromGreatest)

	switch {
	case withScore && ok:
		c.reply.array(2)
		c.reply.count(rank)
		c.reply.double(score)
	case withScore:
		c.reply.nullArray()
	case ok:
		c.reply.count(rank)
	default:
		c.reply.null()
	}
	return nil
}

// zscan handles ZSCAN key cursor [MATCH pattern] [COUNT count]. Of a key that is missing Redis does not read the options.
func zscan(c *call) error {
	k, cursor := c.args.key(), c.args.cursor()
	if c.args.err != nil {
		return c.args.err
	}
	z, err := c.tx.ZSet(k)
	if err != nil {
		return err
	}
	if z.Len() == 0 {
		c.reply.closeScan(c.reply.later(), 0, 0)
		return nil
	}
	options := c.args.scanOptions("", false)
	if err := c.args.end(); err != nil {
		return err
	}

	var found []element
	next := z.Scan(cursor, min(options.count, mostScanned), func(member []byte, score float64) {
		found = append(found, element{name: string(member), score: score})
	})

	return c.elements(options, next, found, func(r *reply, e element) { r.bulkFloat(e.score) })
}

// bulkFloat answers with a number as bytes, in RESP3 too.
func (r *reply) bulkFloat(f float64) {
	var buf [32]byte
	r.bulk(appendFloat(buf[:0], f))
}

func (r *reply) scoreOrNull(score float64, ok bool) {
	if ok {
		r.double(score)
	} else {
		r.null()
	}
}

// members answers with members, and with their scores too: flat in RESP2, in pairs in RESP3.
func (r *reply) members(m engine.ZMembers, withScores bool) {
	switch {
	case withScores && r.resp3:
		r.memberPairs(m)
	case withScores:
		r.memberScores(m)
	default:
		r.array(m.Len())
		for member := range m.All() {
			r.bulk(member)
		}
	}
}

// memberScores answers with members and their scores by turns.
func (r *reply) memberScores(m engine.ZMembers) {
	r.array(2 * m.Len())
	for member, score := range m.All() {
		r.bulk(member)
		r.double(score)
	}
}

// memberPairs answers with pairs of a member and its score.
func (r *reply) memberPairs(m engine.ZMembers) {
	r.array(m.Len())
	for member, score := range m.All() {
		r.array(2)
		r.bulk(member)
		r.double(score)
	}
}
