package resp

import (
	"math"

	"rlserver/engine"
)

func init() {
	register(
		&command{name: "zpopmin", arity: -2, flags: write | fast, keys: []keySpec{key("RW access delete", 1)},
			syntax: "key [count]", group: "sorted-set", since: "5.0.0",
			complexity: "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of elements popped.",
			summary:    "Remove and return members with the lowest scores in a sorted set",
			run:        func(c *call) error { return zpop(c, false) }},
		&command{name: "zpopmax", arity: -2, flags: write | fast, keys: []keySpec{key("RW access delete", 1)},
			syntax: "key [count]", group: "sorted-set", since: "5.0.0",
			complexity: "O(log(N)*M) with N being the number of elements in the sorted set, and M being the number of elements popped.",
			summary:    "Remove and return members with the highest scores in a sorted set",
			run:        func(c *call) error { return zpop(c, true) }},
		&command{name: "zmpop", arity: -4, flags: write | movableKeys, keys: []keySpec{keysCounted("RW access delete", 1)},
			syntax: "numkeys key [key ...] <MIN | MAX> [COUNT count]", group: "sorted-set", since: "7.0.0",
			complexity: "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the sorted set, and M being the number of elements popped.",
			summary:    "Remove and return members with scores in a sorted set",
			run:        zmpop},
		&command{name: "zrandmember", arity: -2, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key [count [WITHSCORES]]", group: "sorted-set", since: "6.2.0",
			complexity: "O(N) where N is the number of elements returned",
			summary:    "Get one or multiple random elements from a sorted set",
			tips:       "nondeterministic_output",
			run:        zrandmember},
	)
}

const (
	errNumKeys      = engine.Error("ERR numkeys should be greater than 0")
	errPopCount     = engine.Error("ERR count should be greater than 0")
	errOutOfRange   = engine.Error("ERR value is out of range")
	errBelowLongMin = engine.Error("ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807")
)

// zpop handles ZPOPMIN and ZPOPMAX key [count].
func zpop(c *call, greatest bool) error {
	keys := [1]engine.Key{c.args.key()}
	counted, n := c.args.more(), int64(1)
	if c.args.left() > 1 {
		return engine.ErrSyntax
	}
	if counted {
		n = c.args.integerFrom(0, errNotPositive)
	}
	if err := c.args.end(); err != nil {
		return err
	}

	found, err := c.tx.ZPop(keys[:], n, greatest, func(_ engine.Key, popped engine.ZMembers) {
		if counted {
			c.reply.members(popped, true)
		} else {
			c.reply.memberScores(popped)
		}
	})
	if err != nil {
		return err
	}

	if !found {
		c.reply.array(0)
	}
	return nil
}

// zmpop handles ZMPOP numkeys key [key ...] MIN | MAX [COUNT count].
func zmpop(c *call) error {
	keys, p := c.args.pops()
	if err := c.args.end(); err != nil {
		return err
	}

	found, err := p.pop(c.tx, keys, &c.reply)
	if err != nil {
		return err
	}

	if !found {
		c.reply.nullArray()
	}
	return nil
}

// maxPicks bounds the answer to a ZRANDMEMBER or HRANDFIELD that may repeat itself: Redis goes on until it has no memory left.
const maxPicks = 1_000_000

// zrandmember handles ZRANDMEMBER key [count [WITHSCORES]].
func zrandmember(c *call) error {
	k := c.args.key()
	if !c.args.more() {
		return zrandmemberOne(c, k)
	}
	n, withScores := c.args.picks("WITHSCORES")
	if err := c.args.end(); err != nil {
		return err
	}

	z, err := c.tx.ZSet(k)
	if err != nil {
		return err
	}
	var picked engine.ZMembers
	if n >= 0 {
		picked = z.Sample(c.random, n)
	} else {
		picked = z.Pick(c.random, int(-n))
	}

	c.reply.members(picked, withScores)
	return nil
}

func zrandmemberOne(c *call, k engine.Key) error {
	z, err := c.tx.ZSet(k)
	if err != nil {
		return err
	}
	member, ok := z.Random(c.random)

	c.reply.bulkOrNull(member, ok)
	return nil
}

// picks takes what ZRANDMEMBER and HRANDFIELD have after the key: how many, and a word for more than the name of each.
func (a *args) picks(with string) (n int64, more bool) {
	n = a.integer()
	if n == math.MinInt64 {
		a.fail(errBelowLongMin)
	}
	more = a.left() == 1 && a.word(with)
	if a.left() > 0 {
		a.fail(engine.ErrSyntax)
	}
	if n < -maxPicks || more && n > math.MaxInt64/2 {
		a.fail(errOutOfRange)
	}
	return n, more
}

// integerFrom takes an integer that is least or more; what else stands there is answered with an error of the command's own.
func (a *args) integerFrom(least int64, err engine.Error) int64 {
	n := a.integerOr(err)
	if n < least {
		a.fail(err)
	}
	return n
}

// countedKeys takes n keys, which must leave at least a few arguments for what comes after them.
func (a *args) countedKeys(n int64, leave int) []engine.Key {
	if n > int64(a.left()-leave) {
		a.fail(engine.ErrSyntax)
	}
	if a.err != nil {
		return nil
	}
	keys := a.keys[:n]
	for range keys {
		a.key()
	}
	return keys
}
