package resp

import (
	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/engine/rule"
)

func init() {
	register(
		&command{name: "rl.slide", arity: -4, flags: write | denyOOM | fast | blocking, keys: []keySpec{key("RW access update", 1)},
			syntax: "key limit window [COST cost] [ID id] [WAIT timeout]", group: "ratelimit", since: "1.0.0",
			complexity: "O(log(N)+C) with N the hits in the window and C the cost",
			summary:    "Admits a call if an exact sliding window has room for it, and records it.",
			example: "> RL.SLIDE login:ann 3 1m\n1) (integer) 1\n2) (integer) 3\n3) (integer) 2\n4) (integer) 0\n5) (integer) 60000\n" +
				"> RL.SLIDE login:ann 3 1m COST 3\n1) (integer) 0\n2) (integer) 3\n3) (integer) 2\n4) (integer) 60000\n5) (integer) 60000",
			run: decide(rule.Slide, optionCost|optionID|optionWait)},
		&command{name: "rl.multi", arity: -4, flags: write | denyOOM | fast | blocking, keys: []keySpec{key("RW access update", 1)},
			syntax: "key limit window [limit window ...] [COST cost] [ID id] [WAIT timeout]", group: "ratelimit", since: "1.0.0",
			complexity: "O(W*log(N)+C) with W the windows, N the hits in the longest and C the cost",
			summary:    "Admits a call if all of several sliding windows over one log have room for it, and records it once.",
			example: "> RL.MULTI mail:ann 1 1m 5 1h 10 1d\n1) (integer) 1\n2) (integer) 1\n3) (integer) 0\n4) (integer) 0\n5) (integer) 86400000\n6) (integer) 0\n" +
				"> RL.MULTI mail:ann 1 1m 5 1h 10 1d\n1) (integer) 0\n2) (integer) 1\n3) (integer) 0\n4) (integer) 60000\n5) (integer) 86400000\n6) (integer) 0",
			run: multi},
		&command{name: "rl.token", arity: -5, flags: write | denyOOM | fast | blocking, keys: []keySpec{key("RW access update", 1)},
			syntax: "key capacity refill period [COST cost] [WAIT timeout]", group: "ratelimit", since: "1.0.0",
			complexity: "O(1)",
			summary:    "Admits a call if a token bucket holds enough tokens, and takes them.",
			example: "> RL.TOKEN api:ann 10 5 1s COST 8\n1) (integer) 1\n2) (integer) 10\n3) (integer) 2\n4) (integer) 0\n5) (integer) 1600\n" +
				"> RL.TOKEN api:ann 10 5 1s COST 8\n1) (integer) 0\n2) (integer) 10\n3) (integer) 2\n4) (integer) 1200\n5) (integer) 1600",
			run: decide(rule.Token, optionCost|optionWait)},
		&command{name: "rl.fixed", arity: -4, flags: write | denyOOM | fast | blocking, keys: []keySpec{key("RW access update", 1)},
			syntax: "key limit window [COST cost] [TZ zone] [WAIT timeout]", group: "ratelimit", since: "1.0.0",
			complexity: "O(1)",
			summary:    "Admits a call if the current fixed or calendar window has room for it, and counts it.",
			example:    "> RL.FIXED export:ann 100 day TZ Europe/Berlin\n1) (integer) 1\n2) (integer) 100\n3) (integer) 99\n4) (integer) 0\n5) (integer) 82800000",
			run:        decide(rule.Fixed, optionCost|optionWait)},
		&command{name: "rl.counter", arity: -4, flags: write | denyOOM | fast | blocking, keys: []keySpec{key("RW access update", 1)},
			syntax: "key limit window [COST cost] [WAIT timeout]", group: "ratelimit", since: "1.0.0",
			complexity: "O(1)",
			summary:    "Admits a call if a sliding window, estimated from two counts, has room for it, and counts it.",
			example: "> RL.COUNTER api:ann 1000 10s COST 600\n1) (integer) 1\n2) (integer) 1000\n3) (integer) 400\n4) (integer) 0\n5) (integer) 20000\n" +
				"> RL.COUNTER api:ann 1000 10s COST 600\n1) (integer) 0\n2) (integer) 1000\n3) (integer) 400\n4) (integer) 13334\n5) (integer) 20000",
			run: decide(rule.Counter, optionCost|optionWait)},
	)
}

// decide makes the handler of a command that holds a call against one limit: key, the algorithm's
// fields, and options.
func decide(kind rule.Kind, allowed optionSet) func(*call) error {
	a := kind.Algorithm()
	return func(c *call) error {
		l := c.oneLimit()
		c.args.limit(a, l)
		o := c.args.options(allowed, a, l)
		if err := c.args.end(); err != nil {
			return err
		}

		d, err := c.admit(func() (limit.Decision, error) { return c.tx.Decide(l, o.cost) })
		if err != nil {
			return err
		}

		c.decided(o.cost, d)
		if kind == rule.Leaky {
			c.reply.delayedDecision(d)
		} else {
			c.reply.decision(d)
		}
		return nil
	}
}

// oneLimit is room for a limit that stays the session's: what decides goes by a table, so a limit
// of the handler's own would be allocated.
func (c *call) oneLimit() *engine.Limit {
	c.limits = append(c.limits[:0], engine.Limit{})
	return &c.limits[0]
}

// maxWindows is how many windows one RL.MULTI may name.
const maxWindows = 128

// multi handles RL.MULTI key limit window [limit window ...] [COST cost] [ID id] [WAIT timeout].
func multi(c *call) error {
	k := c.args.key()
	rules := append(c.rules[:0], c.args.slidingRule())
	for c.args.more() && beginsNumber(c.args.list[0]) {
		if len(rules) == maxWindows {
			return errTooManyWindows
		}
		rules = append(rules, c.args.slidingRule())
	}
	c.rules = rules
	o := c.args.options(optionCost|optionID|optionWait, nil, nil)
	if err := c.args.end(); err != nil {
		return err
	}

	d, err := c.admit(func() (limit.Decision, error) { return c.tx.Slide(k, rules, o.cost, o.id) })
	if err != nil {
		return err
	}

	c.decided(o.cost, d)
	c.reply.ruledDecision(d)
	return nil
}

// decision answers with the five integers of every limiter.
func (r *reply) decision(d limit.Decision) {
	r.array(5)
	r.fields(d)
}

// ruledDecision answers with the five and the index of the rule that they speak of.
func (r *reply) ruledDecision(d limit.Decision) {
	r.array(6)
	r.fields(d)
	r.count(d.Index)
}

// delayedDecision answers with the five and how long to wait before going ahead.
func (r *reply) delayedDecision(d limit.Decision) {
	r.array(6)
	r.fields(d)
	r.integer(d.Delay)
}

func (r *reply) fields(d limit.Decision) {
	r.flag(d.Allowed)
	r.integer(d.Limit)
	r.integer(d.Remaining)
	r.integer(d.RetryAfter)
	r.integer(d.ResetAfter)
}

// limit takes a key and an algorithm's fields.
func (a *args) limit(algorithm *rule.Algorithm, l *engine.Limit) {
	l.Key = a.key()
	a.fields(algorithm, l)
}

func (a *args) fields(algorithm *rule.Algorithm, l *engine.Limit) {
	l.Rule = algorithm.Empty
	for i := range algorithm.Fields {
		a.field(&algorithm.Fields[i], l)
	}
	if algorithm.HasID {
		l.ID = a.leaseID()
	}
}

func (a *args) field(f *rule.Field, l *engine.Limit) {
	word := a.next()
	if a.err == nil {
		a.err = f.Read(word, &l.Rule)
	}
}

// amount takes a count from least (0 or 1) to limit.MaxCount.
func (a *args) amount(name string, least int64) (n int64) {
	word := a.next()
	if a.err == nil {
		n, a.err = rule.Count(name, word, least, limit.MaxCount)
	}
	return n
}

// duration takes a length of time, in ms. The hint ends the error.
func (a *args) duration(hint string) (ms int64) {
	word := a.next()
	if a.err == nil {
		ms, a.err = rule.Duration(word, hint)
	}
	return ms
}

func (a *args) slidingRule() limit.Window {
	return limit.Window{Limit: a.amount("limit", 1), Length: a.duration("")}
}

// beginsNumber tells the limit of one more window from an option.
func beginsNumber(b []byte) bool {
	return len(b) > 0 && (b[0] >= '0' && b[0] <= '9' || b[0] == '-' || b[0] == '+')
}

// options are what may follow the arguments of a limiter: a call without COST costs 1, and one
// without ID has nil.
type options struct {
	cost int64
	id   []byte
}

// optionSet says which options a command takes.
type optionSet uint8

const (
	optionCost optionSet = 1 << iota
	optionID
	optionWait // for admit, which makes the call wait
)

// options takes the options, in any order and each at most once. Those of an algorithm and the ID
// go to the limit, if there is one.
func (a *args) options(allowed optionSet, algorithm *rule.Algorithm, l *engine.Limit) options {
	o, seen := options{cost: 1}, 0
	take := func(option optionSet, word string) bool {
		if allowed&option == 0 || !a.word(word) {
			return false
		}
		allowed &^= option
		return true
	}
	for a.more() {
		switch {
		case take(optionCost, "COST"):
			o.cost = a.amount("COST", 0)
		case take(optionID, "ID"):
			if o.id = a.next(); a.err == nil && len(o.id) == 0 {
				a.fail(errEmptyID)
			}
			if l != nil {
				l.ID = o.id
			}
		case take(optionWait, "WAIT"):
			a.wait = a.duration("; WAIT takes from 1ms to 10 years, and a call without it does not wait")
		case algorithm == nil || !a.algorithmOption(algorithm, l, &seen):
			a.fail(engine.ErrSyntax)
		}
	}
	return o
}

// algorithmOption takes an option of an algorithm, if that is what comes next and has not been seen
// yet.
func (a *args) algorithmOption(algorithm *rule.Algorithm, l *engine.Limit, seen *int) bool {
	i := algorithm.OptionIndex(a.list[0])
	if i < 0 || *seen&(1<<i) != 0 {
		return false
	}
	*seen |= 1 << i
	a.next()
	a.field(&algorithm.Options[i], l)
	return true
}
