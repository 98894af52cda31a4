package resp

import (
	"fmt"
	"math"

	"rlserver/engine"
)

func init() {
	// Each of the two, setting and telling, has four forms: in seconds or ms, relative to now or a point in time.
	sets := func(name, unitName, since, summary string, unit int64, absolute bool) *command {
		return &command{name: name, arity: -3, flags: write | fast, keys: []keySpec{key("RW update", 1)},
			syntax: "key " + unitName + " [NX | XX | GT | LT]", group: "generic", since: since, complexity: "O(1)", summary: summary,
			run: func(c *call) error { return expire(c, unit, absolute) }}
	}
	tells := func(name, since, tips, summary string, unit int64, absolute bool) *command {
		return &command{name: name, arity: 2, flags: readonly | fast, keys: []keySpec{key("RO access", 1)}, tips: tips,
			syntax: "key", group: "generic", since: since, complexity: "O(1)", summary: summary,
			run: func(c *call) error { return ttl(c, unit, absolute) }}
	}
	const random = "nondeterministic_output"
	register(
		sets("expire", "seconds", "1.0.0", "Set a key's time to live in seconds", 1000, false),
		sets("pexpire", "milliseconds", "2.6.0", "Set a key's time to live in milliseconds", 1, false),
		sets("expireat", "unix-time-seconds", "1.2.0", "Set the expiration for a key as a UNIX timestamp", 1000, true),
		sets("pexpireat", "unix-time-milliseconds", "2.6.0", "Set the expiration for a key as a UNIX timestamp specified in milliseconds", 1, true),
		tells("ttl", "1.0.0", random, "Get the time to live for a key in seconds", 1000, false),
		tells("pttl", "2.6.0", random, "Get the time to live for a key in milliseconds", 1, false),
		tells("expiretime", "7.0.0", "", "Get the expiration Unix timestamp for a key", 1000, true),
		tells("pexpiretime", "7.0.0", "", "Get the expiration Unix timestamp for a key in milliseconds", 1, true),
		&command{name: "persist", arity: 2, flags: write | fast, keys: []keySpec{key("RW update", 1)},
			syntax: "key", group: "generic", since: "2.2.0", complexity: "O(1)",
			summary: "Remove the expiration from a key",
			run:     persist},
	)
}

const (
	errNXAndOthers = engine.Error("ERR NX and XX, GT or LT options at the same time are not compatible")
	errGTAndLT     = engine.Error("ERR GT and LT options at the same time are not compatible")
)

// expire handles EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT key time [NX | XX | GT | LT]; the unit is in ms. The options are looked at
// before the time, and the time before the key.
func expire(c *call, unit int64, absolute bool) error {
	k, amount := c.args.key(), c.args.next()
	conditions := c.args.expireConditions()
	at := c.deadline(amount, math.MinInt64, unit, absolute)
	if err := c.args.end(); err != nil {
		return err
	}

	done := c.tx.Expire(k, at, conditions)

	c.reply.flag(done)
	return nil
}

// expireConditions takes the options to the end.
func (a *args) expireConditions() (all engine.ExpireIf) {
	for a.more() {
		switch {
		case a.word("NX"):
			all |= engine.ExpireNX
		case a.word("XX"):
			all |= engine.ExpireXX
		case a.word("GT"):
			all |= engine.ExpireGT
		case a.word("LT"):
			all |= engine.ExpireLT
		default:
			a.fail(engine.Error(fmt.Sprintf("ERR Unsupported option %.128s", a.next())))
		}
	}
	if all&engine.ExpireNX != 0 && all != engine.ExpireNX {
		a.fail(errNXAndOthers)
	}
	if all&engine.ExpireGT != 0 && all&engine.ExpireLT != 0 {
		a.fail(errGTAndLT)
	}
	return all
}

// deadline makes out a point in time, Unix ms, from a number, least or more, of units of so many ms. It may have passed, but must be
// one that 64 bits can tell.
func (c *call) deadline(amount []byte, least, unit int64, absolute bool) int64 {
	n, ok := parseInt(amount)
	if !ok {
		c.args.fail(engine.ErrNotInteger)
		return 0
	}
	now := c.tx.Now()
	if absolute {
		now = 0
	}
	if n < least || n > math.MaxInt64/unit || n < math.MinInt64/unit || n*unit > math.MaxInt64-now {
		c.args.fail(c.invalidExpireTime())
		return 0
	}
	return now + n*unit
}

// invalidExpireTime is what is said of a time that a key cannot expire at.
func (c *call) invalidExpireTime() engine.Error {
	return engine.Error("ERR invalid expire time in '" + c.command.fullName() + "' command")
}

// ttl handles TTL, PTTL, EXPIRETIME and PEXPIRETIME key. Whole units, of so many ms, are rounded to the nearest.
func ttl(c *call, unit int64, absolute bool) error {
	at, ok := c.tx.Deadline(c.args.key())
	switch {
	case !ok:
		c.reply.integer(-2)
		return nil
	case at == 0:
		c.reply.integer(-1)
		return nil
	case !absolute:
		at -= c.tx.Now()
	}
	c.reply.integer(at/unit + (at%unit+unit/2)/unit)
	return nil
}

// persist handles PERSIST key.
func persist(c *call) error {
	c.reply.flag(c.tx.Persist(c.args.key()))
	return nil
}
