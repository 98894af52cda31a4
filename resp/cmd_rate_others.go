package resp

import (
	"fmt"
	"math"

	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/engine/rule"
)

// Limiters as other servers have them, for their clients. All are the token bucket of RL.TOKEN,
// seen as the generic cell rate algorithm, and exact where theirs round the time between two
// tokens. The arguments, their order, the fields and the errors are the others'; errors of our own
// are for what would not fit here.
func init() {
	register(
		&command{name: "cl.throttle", arity: -5, flags: write | denyOOM | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key max_burst count period [quantity]", group: "ratelimit", since: "1.0.0",
			complexity: "O(1)",
			summary: "RL.TOKEN for clients of redis-cell and Dragonfly: a bucket of max_burst+1 that refills with count each period, in seconds. Replies " +
				"1 if limited or 0, the capacity, the remaining, the seconds until a retry or -1, and those until the bucket is full.",
			example: "> CL.THROTTLE api:ann 14 30 60\n1) (integer) 0\n2) (integer) 15\n3) (integer) 14\n4) (integer) -1\n5) (integer) 2\n" +
				"> CL.THROTTLE api:ann 14 30 60 15\n1) (integer) 1\n2) (integer) 15\n3) (integer) 14\n4) (integer) 2\n5) (integer) 2",
			run: cellThrottle},
		&command{name: "gcra", arity: -5, flags: write | denyOOM | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key max-burst tokens-per-period period [TOKENS count]", group: "ratelimit", since: "1.0.0",
			complexity: "O(1)",
			summary: "RL.TOKEN for clients that know the GCRA of Redis 8.8's milestones: arguments and reply are those of CL.THROTTLE, but the period may " +
				"have decimals.",
			example: "> GCRA api:ann 5 10 60 TOKENS 6\n1) (integer) 0\n2) (integer) 6\n3) (integer) 0\n4) (integer) -1\n5) (integer) 36\n" +
				"> GCRA api:ann 5 10 60\n1) (integer) 1\n2) (integer) 6\n3) (integer) 0\n4) (integer) 6\n5) (integer) 36",
			run: gcra},
		&command{name: "throttle", arity: -5, flags: write | denyOOM | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key max_burst count period [quantity]", group: "ratelimit", since: "1.0.0",
			complexity: "O(1)",
			summary: "RL.TOKEN for clients of throttlecrab: a bucket of max_burst that refills with count each period, in seconds. Replies 1 if allowed or 0, " +
				"the capacity, the remaining, the seconds until the bucket is full and those until a retry: 0 if allowed, -1 if never.",
			example: "> THROTTLE api:ann 10 100 60 10\n1) (integer) 1\n2) (integer) 10\n3) (integer) 0\n4) (integer) 6\n5) (integer) 0\n" +
				"> THROTTLE api:ann 10 100 60 10\n1) (integer) 0\n2) (integer) 10\n3) (integer) 0\n4) (integer) 6\n5) (integer) 6",
			run: throttle},
	)
}

const (
	errZeroRate  = engine.Error("Cell error: Zero rates are not supported")
	errBelowOne  = engine.Error("ERR value is out of range, value must between 1 and 9223372036854775807")
	errPeriod    = engine.Error("ERR period must be > 0 and < 1e12")
	errNoTokens  = engine.Error("ERR Missing TOKENS value")
	errRateLimit = engine.Error("ERR Rate limit check failed: invalid rate limit parameters")
)

// maxSeconds is the longest period in seconds.
const maxSeconds = limit.MaxDuration / 1000

// cellThrottle handles CL.THROTTLE key max_burst count period [quantity].
func cellThrottle(c *call) error {
	k := c.args.key()
	burst, count, period, quantity := c.args.cell(), c.args.cell(), c.args.cell(), int64(1)
	if c.args.more() {
		quantity = c.args.cell()
	}
	if err := c.endOrArity(); err != nil {
		return err
	}
	if count == 0 || period == 0 {
		return errZeroRate
	}
	c.args.hold("max_burst", burst, 0, limit.MaxCount-1)
	c.args.hold("count", count, 1, limit.MaxCount)
	c.args.hold("period", period, 1, maxSeconds)
	c.args.hold("quantity", quantity, 0, math.MaxInt64)
	if c.args.err != nil {
		return c.args.err
	}

	d, err := c.throttle(k, limit.Bucket{Capacity: burst + 1, Refill: count, Period: period * 1000}, quantity)
	if err != nil {
		return err
	}

	c.reply.limited(d)
	return nil
}

// cell takes a number as redis-cell does.
func (a *args) cell() int64 {
	b := a.next()
	n, ok := parseInt(b)
	if !ok {
		a.fail(engine.Error(fmt.Sprintf("Cell error: Couldn't parse as integer: %.128s", b)))
	}
	return n
}

// hold refuses a number that is out of our range.
func (a *args) hold(name string, n, least, most int64) {
	if n < least || n > most {
		a.fail(engine.Error(fmt.Sprintf("ERR %s must be from %d to %d", name, least, most)))
	}
}

// endOrArity is args.end for commands of others, whose calls have too many words if any are left.
func (c *call) endOrArity() error {
	if c.args.more() {
		return engine.Error("ERR wrong number of arguments for '" + c.command.fullName() + "' command")
	}
	return c.args.err
}

// throttle decides as those servers do: a quantity of 0 is not limited by an empty bucket, as there
// is nothing it needs, but by one from which more is missing than it holds. That is what a peek
// asks of a bucket with room for one more.
func (c *call) throttle(k engine.Key, bucket limit.Bucket, quantity int64) (limit.Decision, error) {
	if quantity > 0 {
		d, err := c.token(k, bucket, quantity)
		if err == nil {
			c.decided(quantity, d)
		}
		return d, err
	}
	bucket.Capacity++
	d, err := c.token(k, bucket, 0)
	d.Limit, d.Remaining = d.Limit-1, max(d.Remaining-1, 0)
	return d, err
}

// token decides as RL.TOKEN does.
func (c *call) token(k engine.Key, bucket limit.Bucket, cost int64) (limit.Decision, error) {
	l := c.oneLimit()
	l.Key, l.Kind, l.Token = k, rule.Token, bucket
	return c.tx.Decide(l, cost)
}

// limited answers with the five integers of redis-cell.
func (r *reply) limited(d limit.Decision) {
	r.array(5)
	r.flag(!d.Allowed)
	r.integer(d.Limit)
	r.integer(d.Remaining)
	if d.Allowed {
		r.integer(-1)
	} else {
		r.integer(seconds(d.RetryAfter))
	}
	r.integer(seconds(d.ResetAfter))
}

// seconds rounds milliseconds up; limit.Never stays.
func seconds(ms int64) int64 {
	if ms < 0 {
		return ms
	}
	return ms/1000 + min(ms%1000, 1)
}

// gcra handles GCRA key max-burst tokens-per-period period [TOKENS count].
func gcra(c *call) error {
	if len(c.words) > 7 {
		return engine.Error("ERR wrong number of arguments for 'gcra' command")
	}
	k := c.args.key()
	burst := c.args.least("max-burst", 0, limit.MaxCount-1, errNotPositive)
	refill := c.args.least("tokens-per-period", 1, limit.MaxCount, errBelowOne)
	bucket := bucketOfSeconds(burst+1, refill, c.args.period())
	tokens := int64(1)
	if c.args.more() {
		tokens = c.args.tokens()
	}
	if err := c.args.end(); err != nil {
		return err
	}

	d, err := c.token(k, bucket, tokens)
	if err != nil {
		return err
	}

	c.decided(tokens, d)
	c.reply.limited(d)
	return nil
}

// least takes a number as Redis does: below the least has an error of Redis', above the most one of
// ours.
func (a *args) least(name string, least, most int64, below engine.Error) int64 {
	n := a.integer()
	if a.err == nil && n < least {
		a.fail(below)
	}
	if a.err == nil {
		a.hold(name, n, least, most)
	}
	return n
}

// period takes decimal seconds.
func (a *args) period() float64 {
	f := a.float()
	switch {
	case a.err != nil:
	case f <= 0 || f >= 1e12:
		a.fail(errPeriod)
	case f > maxSeconds:
		a.fail(engine.Error(fmt.Sprintf("ERR period must be at most %d", maxSeconds)))
	}
	return f
}

func (a *args) tokens() int64 {
	switch {
	case !a.word("TOKENS"):
		a.fail(engine.ErrSyntax)
	case !a.more():
		a.fail(errNoTokens)
	}
	return a.least("TOKENS", 1, math.MaxInt64, errBelowOne)
}

// bucketOfSeconds is a bucket whose period is in seconds, to the microsecond as in Redis. A Bucket
// counts in ms: of a period that is no whole number of them it takes a thousand, and as many times
// the tokens, where that can be; where not, the period is rounded up: no more is admitted than was
// asked for.
func bucketOfSeconds(capacity, refill int64, period float64) limit.Bucket {
	us := int64(math.Round(period * 1e6))
	if us%1000 != 0 && us <= limit.MaxDuration && refill <= limit.MaxCount/1000 {
		return limit.Bucket{Capacity: capacity, Refill: refill * 1000, Period: us}
	}
	return limit.Bucket{Capacity: capacity, Refill: refill, Period: max((us+999)/1000, 1)}
}

// throttle handles THROTTLE key max_burst count period [quantity].
func throttle(c *call) error {
	k := c.args.key()
	burst := c.args.integerOr("ERR invalid max_burst")
	count := c.args.integerOr("ERR invalid count_per_period")
	period := c.args.integerOr("ERR invalid period")
	quantity := int64(1)
	if c.args.more() {
		quantity = c.args.integerOr("ERR invalid quantity")
	}
	if err := c.endOrArity(); err != nil {
		return err
	}
	switch {
	case quantity < 0:
		return engine.Error(fmt.Sprintf("ERR Rate limit check failed: negative quantity: %d", quantity))
	case burst <= 0 || count <= 0 || period <= 0:
		return errRateLimit
	}
	c.args.hold("max_burst", burst, 1, limit.MaxCount)
	c.args.hold("count", count, 1, limit.MaxCount)
	c.args.hold("period", period, 1, maxSeconds)
	if c.args.err != nil {
		return c.args.err
	}

	d, err := c.throttle(k, limit.Bucket{Capacity: burst, Refill: count, Period: period * 1000}, quantity)
	if err != nil {
		return err
	}

	c.reply.array(5)
	c.reply.flag(d.Allowed)
	c.reply.integer(d.Limit)
	c.reply.integer(d.Remaining)
	c.reply.integer(seconds(d.ResetAfter))
	c.reply.integer(seconds(d.RetryAfter))
	return nil
}
