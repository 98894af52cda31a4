package resp

import (
	"math"

	"rlserver/engine"
)

func init() {
	const alike = write | noScript | fast | blocking
	register(
		&command{name: "bzpopmin", arity: -3, flags: alike, keys: []keySpec{{access: "RW access delete", begin: 1, last: -2, step: 1}},
			syntax: "key [key ...] timeout", group: "sorted-set", since: "5.0.0",
			complexity: "O(log(N)) with N being the number of elements in the sorted set.",
			summary:    "Remove and return the member with the lowest score from one or more sorted sets, or block until one is available",
			run:        func(c *call) error { return bzpop(c, false) }},
		&command{name: "bzpopmax", arity: -3, flags: alike, keys: []keySpec{{access: "RW access delete", begin: 1, last: -2, step: 1}},
			syntax: "key [key ...] timeout", group: "sorted-set", since: "5.0.0",
			complexity: "O(log(N)) with N being the number of elements in the sorted set.",
			summary:    "Remove and return the member with the highest score from one or more sorted sets, or block until one is available",
			run:        func(c *call) error { return bzpop(c, true) }},
		&command{name: "bzmpop", arity: -5, flags: write | blocking | movableKeys, keys: []keySpec{keysCounted("RW access delete", 2)},
			syntax: "timeout numkeys key [key ...] <MIN | MAX> [COUNT count]", group: "sorted-set", since: "7.0.0",
			complexity: "O(K) + O(M*log(N)) where K is the number of provided keys, N being the number of elements in the sorted set, and M being the number of elements popped.",
			summary:    "Remove and return members with scores in a sorted set or block until one is available",
			run:        bzmpop},
	)
}

const (
	errTimeoutFloat    = engine.Error("ERR timeout is not a float or out of range")
	errTimeoutNegative = engine.Error("ERR timeout is negative")
)

// zpopper is what is popped once there is something, and how it is answered.
type zpopper struct {
	n        int64
	greatest bool
	pairs    bool // with the name of the key and pairs, as by ZMPOP; otherwise flat
}

// pop takes from the first of the keys that holds any members; found is false if none does.
func (p zpopper) pop(tx *engine.Tx, keys []engine.Key, r *reply) (found bool, err error) {
	return tx.ZPop(keys, p.n, p.greatest, func(from engine.Key, popped engine.ZMembers) {
		if p.pairs {
			r.array(2)
			r.bulk(from.Name)
			r.memberPairs(popped)
			return
		}
		r.array(3)
		r.bulk(from.Name)
		for member, score := range popped.All() {
			r.bulk(member)
			r.double(score)
		}
	})
}

// bzpop handles BZPOPMIN and BZPOPMAX key [key ...] timeout.
func bzpop(c *call, greatest bool) error {
	keys := c.args.countedKeys(int64(c.args.left()-1), 1)
	wait := c.args.timeout()
	if err := c.args.end(); err != nil {
		return err
	}
	return c.popOrWait(keys, wait, zpopper{n: 1, greatest: greatest})
}

// bzmpop handles BZMPOP timeout numkeys key [key ...] MIN | MAX [COUNT count].
func bzmpop(c *call) error {
	timeout := args{list: [][]byte{c.args.next()}} // which Redis looks at last
	keys, p := c.args.pops()
	if err := c.args.end(); err != nil {
		return err
	}
	wait := timeout.timeout()
	if timeout.err != nil {
		return timeout.err
	}
	return c.popOrWait(keys, wait, p)
}

// popOrWait pops, now or, unless it is within a transaction, when there is something, and at the latest after wait ms.
func (c *call) popOrWait(keys []engine.Key, wait int64, p zpopper) error {
	found, err := p.pop(c.tx, keys, &c.reply)
	switch {
	case err != nil || found:
		return err
	case c.executing:
		c.reply.nullArray()
		return nil
	}
	c.request = request{deadline: after(c.env.time.Elapsed(), wait), pop: p}
	return errHeld
}

// timeout takes how long to wait, in seconds with decimals, and gives it in ms: never for 0, which is for ever.
func (a *args) timeout() (ms int64) {
	seconds := a.floatOr(errTimeoutFloat)
	if seconds = math.Ceil(seconds * 1000); seconds < 0 || seconds >= math.MaxInt64 { // which Redis lets turn negative
		a.fail(errTimeoutNegative)
	}
	switch {
	case a.err != nil:
		return 0
	case seconds == 0:
		return never
	}
	return int64(seconds)
}

// pops takes what ZMPOP has in common with BZMPOP: numkeys key [key ...] MIN | MAX [COUNT count].
func (a *args) pops() (keys []engine.Key, p zpopper) {
	keys = a.countedKeys(a.integerFrom(1, errNumKeys), 1)
	p = zpopper{n: 1, greatest: a.word("MAX"), pairs: true}
	if !p.greatest && !a.word("MIN") {
		a.fail(engine.ErrSyntax)
	}
	if a.left() > 1 && a.word("COUNT") {
		p.n = a.integerFrom(1, errPopCount)
	}
	return keys, p
}
