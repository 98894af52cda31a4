package limits

import (
	"fmt"
	"math"

	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/engine/rule"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

// Limiters of other servers, for their clients. All are the token bucket of RL.TOKEN, seen as the
// generic cell rate algorithm; they are exact where the other servers round the time between two
// tokens. The arguments, their order, the fields and the errors are those of the other servers,
// with additional errors for values that do not fit here.
func init() {
	command.Register("ratelimit",
		&command.Command{Name: "cl.throttle", Arity: -5, Flags: command.Write | command.DenyOOM | command.Fast,
			Keys: command.OneKey("RW access update"), Syntax: "key max_burst count period [quantity]", Since: "1.0.0",
			Complexity: "O(1)",
			Summary: "RL.TOKEN for clients of redis-cell and Dragonfly: a bucket of max_burst+1 that " +
				"refills with count each period, in seconds. Replies 1 if limited or 0, the capacity, the " +
				"remaining, the seconds until a retry or -1, and those until the bucket is full.", Run: cellThrottle},
		&command.Command{Name: "gcra", Arity: -5, Flags: command.Write | command.DenyOOM | command.Fast,
			Keys: command.OneKey("RW access update"), Syntax: "key max-burst tokens-per-period period [TOKENS count]",
			Since: "1.0.0", Complexity: "O(1)",
			Summary: "RL.TOKEN for clients that know the GCRA of Redis 8.8's milestones: arguments and " +
				"reply are those of CL.THROTTLE, but the period may have decimals.", Run: gcra},
		&command.Command{Name: "throttle", Arity: -5, Flags: command.Write | command.DenyOOM | command.Fast,
			Keys: command.OneKey("RW access update"), Syntax: "key max_burst count period [quantity]", Since: "1.0.0",
			Complexity: "O(1)",
			Summary: "RL.TOKEN for clients of throttlecrab: a bucket of max_burst that refills with count " +
				"each period, in seconds. Replies 1 if allowed or 0, the capacity, the remaining, the seconds " +
				"until the bucket is full and those until a retry: 0 if allowed, -1 if never.", Run: throttle},
	)
}

const (
	errZeroRate  = engine.Error("Cell error: Zero rates are not supported")
	errBelowOne  = engine.Error("ERR value is out of range, value must between 1 and 9223372036854775807")
	errPeriod    = engine.Error("ERR period must be > 0 and < 1e12")
	errNoTokens  = engine.Error("ERR Missing TOKENS value")
	errRateLimit = engine.Error("ERR Rate limit check failed: invalid rate limit parameters")
)

// maxSeconds is the maximum period in seconds.
const maxSeconds = limit.MaxDuration / 1000

// cellThrottle handles CL.THROTTLE key max_burst count period [quantity].
func cellThrottle(c *command.Call) error {
	k := c.Args.Key()
	burst, count, period, quantity := parseCell(&c.Args), parseCell(&c.Args), parseCell(&c.Args), int64(1)
	if c.Args.More() {
		quantity = parseCell(&c.Args)
	}
	if err := endOrArity(c); err != nil {
		return err
	}
	if count == 0 || period == 0 {
		return errZeroRate
	}
	checkRange(&c.Args, "max_burst", burst, 0, limit.MaxCount-1)
	checkRange(&c.Args, "count", count, 1, limit.MaxCount)
	checkRange(&c.Args, "period", period, 1, maxSeconds)
	checkRange(&c.Args, "quantity", quantity, 0, math.MaxInt64)
	if c.Args.Err != nil {
		return c.Args.Err
	}

	d, err := decideCell(c, k, limit.Bucket{Capacity: burst + 1, Refill: count, Period: period * 1000}, quantity)
	if err != nil {
		return err
	}

	writeLimited(&c.Reply, d)
	return nil
}

// parseCell parses a number as redis-cell parses it.
func parseCell(a *command.Args) int64 {
	b := a.Next()
	n, ok := grammar.ParseInt(b)
	if !ok {
		a.Fail(engine.Error(fmt.Sprintf("Cell error: Couldn't parse as integer: %.128s", b)))
	}
	return n
}

// checkRange fails on a number outside the range of this server's limiters.
func checkRange(a *command.Args, name string, n, least, most int64) {
	if n < least || n > most {
		a.Fail(engine.Error(fmt.Sprintf("ERR %s must be from %d to %d", name, least, most)))
	}
}

// endOrArity is Args.End for commands of other servers: an argument that is left over is a wrong
// number of arguments.
func endOrArity(c *command.Call) error {
	if c.Args.More() {
		return c.WrongArity()
	}
	return c.Args.Err
}

// decideCell decides as those servers do. A quantity of 0 is not denied by an empty bucket, as it
// needs no token, but by one that owes more tokens than it holds. That equals a peek at a bucket
// with a capacity of one more.
func decideCell(c *command.Call, k engine.Key, bucket limit.Bucket, quantity int64) (limit.Decision, error) {
	if quantity > 0 {
		d, err := Token(c, k, bucket, quantity)
		if err == nil {
			c.Decided(quantity, d)
		}
		return d, err
	}
	bucket.Capacity++
	d, err := Token(c, k, bucket, 0)
	d.Limit, d.Remaining = d.Limit-1, max(d.Remaining-1, 0)
	return d, err
}

// Token decides as RL.TOKEN does.
func Token(c *command.Call, k engine.Key, bucket limit.Bucket, cost int64) (limit.Decision, error) {
	l := c.OneLimit()
	l.Key, l.Kind, l.Token, l.Cost = k, rule.Token, bucket, cost
	return c.Tx.Decide(&l.Limit)
}

// writeLimited replies with the five integers of redis-cell.
func writeLimited(r *wire.Reply, d limit.Decision) {
	retry := int64(-1)
	if !d.Allowed {
		retry = seconds(d.RetryAfter)
	}
	r.Integers([]int64{1 - allowed(d), d.Limit, d.Remaining, retry, seconds(d.ResetAfter)})
}

// seconds converts ms to seconds, rounded up. limit.Never stays as it is.
func seconds(ms int64) int64 {
	if ms < 0 {
		return ms
	}
	return ms/1000 + min(ms%1000, 1)
}

// gcra handles GCRA key max-burst tokens-per-period period [TOKENS count].
func gcra(c *command.Call) error {
	if len(c.Words) > 7 {
		return c.WrongArity()
	}
	k := c.Args.Key()
	burst := parseLeast(&c.Args, "max-burst", 0, limit.MaxCount-1, command.ErrNotPositive)
	refill := parseLeast(&c.Args, "tokens-per-period", 1, limit.MaxCount, errBelowOne)
	bucket := bucketOfSeconds(burst+1, refill, parsePeriod(&c.Args))
	tokens := int64(1)
	if c.Args.More() {
		tokens = parseTokens(&c.Args)
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	d, err := decideCell(c, k, bucket, tokens)
	if err != nil {
		return err
	}

	writeLimited(&c.Reply, d)
	return nil
}

// parseLeast parses a number as Redis does: a number below least is an error of Redis, one above
// most an error of this server.
func parseLeast(a *command.Args, name string, least, most int64, below engine.Error) int64 {
	n := a.Integer()
	if a.Err == nil && n < least {
		a.Fail(below)
	}
	if a.Err == nil {
		checkRange(a, name, n, least, most)
	}
	return n
}

// parsePeriod parses decimal seconds.
func parsePeriod(a *command.Args) float64 {
	f := a.Float()
	switch {
	case a.Err != nil:
	case f <= 0 || f >= 1e12:
		a.Fail(errPeriod)
	case f > maxSeconds:
		a.Fail(engine.Error(fmt.Sprintf("ERR period must be at most %d", maxSeconds)))
	}
	return f
}

func parseTokens(a *command.Args) int64 {
	switch {
	case !a.Word("TOKENS"):
		a.Fail(engine.ErrSyntax)
	case !a.More():
		a.Fail(errNoTokens)
	}
	return parseLeast(a, "TOKENS", 1, math.MaxInt64, errBelowOne)
}

// bucketOfSeconds returns a bucket whose period is in seconds, exact to the microsecond as in
// Redis. A Bucket counts in ms: for a period that is not a whole number of ms it uses a thousand
// periods and a thousand times the tokens, if those fit. Otherwise the period is rounded up, so no
// more calls are admitted than requested.
func bucketOfSeconds(capacity, refill int64, period float64) limit.Bucket {
	us := int64(math.Round(period * 1e6))
	if us%1000 != 0 && us <= limit.MaxDuration && refill <= limit.MaxCount/1000 {
		return limit.Bucket{Capacity: capacity, Refill: refill * 1000, Period: us}
	}
	return limit.Bucket{Capacity: capacity, Refill: refill, Period: max((us+999)/1000, 1)}
}

// throttle handles THROTTLE key max_burst count period [quantity].
func throttle(c *command.Call) error {
	k := c.Args.Key()
	burst := c.Args.IntegerOr("ERR invalid max_burst")
	count := c.Args.IntegerOr("ERR invalid count_per_period")
	period := c.Args.IntegerOr("ERR invalid period")
	quantity := int64(1)
	if c.Args.More() {
		quantity = c.Args.IntegerOr("ERR invalid quantity")
	}
	if err := endOrArity(c); err != nil {
		return err
	}
	switch {
	case quantity < 0:
		return engine.Error(fmt.Sprintf("ERR Rate limit check failed: negative quantity: %d", quantity))
	case burst <= 0 || count <= 0 || period <= 0:
		return errRateLimit
	}
	checkRange(&c.Args, "max_burst", burst, 1, limit.MaxCount)
	checkRange(&c.Args, "count", count, 1, limit.MaxCount)
	checkRange(&c.Args, "period", period, 1, maxSeconds)
	if c.Args.Err != nil {
		return c.Args.Err
	}

	d, err := decideCell(c, k, limit.Bucket{Capacity: burst, Refill: count, Period: period * 1000}, quantity)
	if err != nil {
		return err
	}

	c.Reply.Array(5)
	c.Reply.Flag(d.Allowed)
	c.Reply.Integer(d.Limit)
	c.Reply.Integer(d.Remaining)
	c.Reply.Integer(seconds(d.ResetAfter))
	c.Reply.Integer(seconds(d.RetryAfter))
	return nil
}
