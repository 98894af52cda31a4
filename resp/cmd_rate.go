package resp

import (
	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/engine/rule"
)

func init() {
	one := "key <" + rule.Forms(" | ", " | ", true) + ">"
	register(
		&command{name: "rl.all", arity: -5, flags: write | denyOOM | fast | blocking, keys: []keySpec{keysOfRules("RW access update", 1)},
			syntax: one + " [" + one + " ...] [COST cost] [WAIT timeout]", group: "ratelimit", since: "1.0.0",
			complexity: "O(R*(R+log(N)+C)) with R the rules, at most 128, N the hits or leases of a key and C the cost of a sliding window",
			summary:    "Admits a call if all of several limits, of any kinds and on any keys, have room for it, and records it in each; or changes nothing.",
			example: "> RL.ALL user:ann SLIDE 100 1m site TOKEN 500 50 1s work LEASE 1 30s job-7\n" +
				"1) (integer) 1\n2) (integer) 1\n3) (integer) 0\n4) (integer) 0\n5) (integer) 60000\n6) (integer) 2\n" +
				"> RL.ALL user:ann SLIDE 100 1m site TOKEN 500 50 1s work LEASE 1 30s job-8\n" +
				"1) (integer) 0\n2) (integer) 1\n3) (integer) 0\n4) (integer) 30000\n5) (integer) 60000\n6) (integer) 2",
			run: all},
		&command{name: "rl.lease", arity: -5, flags: write | denyOOM | fast | blocking, keys: []keySpec{key("RW access update", 1)},
			syntax: "key limit ttl id [WAIT timeout]", group: "ratelimit", since: "1.0.0",
			complexity: "O(log(N)+M) with N the leases held and M those that have lapsed since",
			summary:    "Takes one of as many leases as may be held at once, or renews the one that the id holds. It lapses by itself.",
			example: "> RL.LEASE gpu 1 30s job-7\n1) (integer) 1\n2) (integer) 1\n3) (integer) 0\n4) (integer) 0\n5) (integer) 30000\n" +
				"> RL.LEASE gpu 1 30s job-8\n1) (integer) 0\n2) (integer) 1\n3) (integer) 0\n4) (integer) 30000\n5) (integer) 30000",
			run: decide(rule.Lease, optionWait)},
		&command{name: "rl.release", arity: 3, flags: write | fast, keys: []keySpec{key("RW access delete", 1)},
			syntax: "key id", group: "ratelimit", since: "1.0.0",
			complexity: "O(log(N)+M) with N the leases held and M those that have lapsed since",
			summary:    "Gives a lease back. Replies 1, or 0 if the id holds none.",
			example:    "> RL.LEASE gpu 1 30s job-7\n1) (integer) 1\n2) (integer) 1\n3) (integer) 0\n4) (integer) 0\n5) (integer) 30000\n> RL.RELEASE gpu job-7\n(integer) 1",
			run:        release},
		&command{name: "rl.refund", arity: -3, flags: write | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key hits [ID id]", group: "ratelimit", since: "1.0.0",
			complexity: "O(1) for buckets and fixed windows, O(log(N)+M) for logs with N the hits in it and M those given back, or recorded under the id",
			summary:    "Gives hits back to a limiter, at most what was used: the newest, or those of the id. Replies how many.",
			example: "> RL.SLIDE mail:ann 10 1h COST 3\n1) (integer) 1\n2) (integer) 10\n3) (integer) 7\n4) (integer) 0\n5) (integer) 3600000\n" +
				"> RL.REFUND mail:ann 2\n(integer) 2\n> RL.REFUND mail:ann 2\n(integer) 1",
			run: refund},
		&command{name: "rl.leaky", arity: -4, flags: write | denyOOM | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key rate period [QUEUE queue] [COST cost]", group: "ratelimit", since: "1.0.0",
			complexity: "O(1)",
			summary: "Paces calls with a leaky bucket: the sixth integer is how many ms an admitted caller is to wait before it goes ahead. " +
				"Denied when more than QUEUE, or any without it, would be waiting.",
			example: "> RL.LEAKY sms 2 1s QUEUE 1\n1) (integer) 1\n2) (integer) 2\n3) (integer) 1\n4) (integer) 0\n5) (integer) 500\n6) (integer) 0\n" +
				"> RL.LEAKY sms 2 1s QUEUE 1\n1) (integer) 1\n2) (integer) 2\n3) (integer) 0\n4) (integer) 0\n5) (integer) 1000\n6) (integer) 500\n" +
				"> RL.LEAKY sms 2 1s QUEUE 1\n1) (integer) 0\n2) (integer) 2\n3) (integer) 0\n4) (integer) 500\n5) (integer) 1000\n6) (integer) 0",
			run: decide(rule.Leaky, optionCost)},
	)
}

const (
	maxRules  = 128 // how many rules one RL.ALL may have
	keptRules = 8   // and for how many a session keeps room
)

var errRule = engine.Error("ERR syntax error: a rule is a key and " + rule.Forms(", ", " or ", true) +
	"; behind the rules may stand COST cost and WAIT timeout")

// all handles RL.ALL rule [rule ...] [COST cost] [WAIT timeout].
func all(c *call) error {
	limits := append(c.limits[:0], engine.Limit{})
	c.args.rule(&limits[0])
	for c.args.more() && beginsRule(c.args.list) {
		if len(limits) == maxRules {
			return errTooManyRules
		}
		limits = append(limits, engine.Limit{})
		c.args.rule(&limits[len(limits)-1])
	}
	if cap(limits) <= keptRules {
		c.limits = limits
	}
	o := c.args.options(optionCost|optionWait, nil, nil)
	switch err := c.args.end(); {
	case err == engine.ErrSyntax: // most likely a rule that is cut short
		return errRule
	case err != nil:
		return err
	}

	d, err := c.admit(func() (limit.Decision, error) { return c.tx.All(limits, o.cost) })
	if err != nil {
		return err
	}

	c.decided(o.cost, d)
	c.reply.ruledDecision(d)
	return nil
}

// rule takes a key and what limits it.
func (a *args) rule(l *engine.Limit) {
	if length := ruleLength(a.list); length == 0 || length > len(a.list) {
		a.fail(errRule)
		return
	}
	algorithm, key := rule.Find(a.list[1]), a.key()
	a.next()
	a.fields(algorithm, l)
	l.Key = key
	for seen := 0; a.more() && optionFollows(algorithm, a.list) && a.algorithmOption(algorithm, l, &seen); {
	}
}

func (a *args) leaseID() []byte {
	id := a.next()
	if len(id) == 0 {
		a.fail(errEmptyLease)
	}
	return id
}

// release handles RL.RELEASE key id.
func release(c *call) error {
	k, id := c.args.key(), c.args.leaseID()
	if err := c.args.end(); err != nil {
		return err
	}

	released, err := c.tx.Release(k, id)
	if err != nil {
		return err
	}

	c.reply.flag(released)
	return nil
}

// refund handles RL.REFUND key hits [ID id].
func refund(c *call) error {
	k, n := c.args.key(), c.args.amount("hits", 1)
	o := c.args.options(optionID, nil, nil)
	if err := c.args.end(); err != nil {
		return err
	}

	back, err := c.tx.Refund(k, n, o.id)
	if err != nil {
		return err
	}

	c.reply.integer(back)
	return nil
}
