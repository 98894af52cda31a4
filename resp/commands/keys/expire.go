package keys

import (
	"math"

	"rlserver/engine"
	"rlserver/resp/command"
)

func init() {
	// Setting and reading the expiry have four forms each: in seconds or ms, relative or absolute.
	setter := func(name string, unit int64, absolute bool) *command.Command {
		return command.OnKey(name, -3, command.Write|command.Fast, "RW update",
			func(c *command.Call) error { return expire(c, unit, absolute) })
	}
	getter := func(name string, unit int64, absolute bool) *command.Command {
		return command.OnKey(name, 2, command.Readonly|command.Fast, "RO access",
			func(c *command.Call) error { return ttl(c, unit, absolute) })
	}
	command.Register("generic",
		setter("expire", 1000, false), setter("pexpire", 1, false),
		setter("expireat", 1000, true), setter("pexpireat", 1, true),
		getter("ttl", 1000, false), getter("pttl", 1, false),
		getter("expiretime", 1000, true), getter("pexpiretime", 1, true),
		command.OnKey("persist", 2, command.Write|command.Fast, "RW update", persist),
	)
}

const (
	errNXAndOthers = engine.Error("ERR NX and XX, GT or LT options at the same time are not compatible")
	errGTAndLT     = engine.Error("ERR GT and LT options at the same time are not compatible")
)

// expire handles EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT key time [NX | XX | GT | LT]; unit is in
// ms. The options are checked before the time, and the time before the key.
func expire(c *command.Call, unit int64, absolute bool) error {
	k, amount := c.Args.Key(), c.Args.Next()
	conditions := parseExpireConditions(&c.Args)
	at := c.Deadline(amount, math.MinInt64, unit, absolute)
	if err := c.Args.End(); err != nil {
		return err
	}

	return c.ReplyFlag(c.Tx.Expire(k, at, conditions), nil)
}

// parseExpireConditions parses all remaining arguments, as options.
func parseExpireConditions(a *command.Args) (all engine.ExpireIf) {
	for a.More() {
		switch {
		case a.Word("NX"):
			all |= engine.ExpireNX
		case a.Word("XX"):
			all |= engine.ExpireXX
		case a.Word("GT"):
			all |= engine.ExpireGT
		case a.Word("LT"):
			all |= engine.ExpireLT
		default:
			a.Fail(engine.Errorf("ERR Unsupported option %.128s", a.Next()))
		}
	}
	if all&engine.ExpireNX != 0 && all != engine.ExpireNX {
		a.Fail(errNXAndOthers)
	}
	if all&engine.ExpireGT != 0 && all&engine.ExpireLT != 0 {
		a.Fail(errGTAndLT)
	}
	return all
}

// ttl handles TTL, PTTL, EXPIRETIME and PEXPIRETIME key. Times are rounded to the nearest unit, in
// ms.
func ttl(c *command.Call, unit int64, absolute bool) error {
	at, ok := c.Tx.Deadline(c.Args.Key())
	switch {
	case !ok:
		return c.ReplyInteger(-2, nil)
	case at == 0:
		return c.ReplyInteger(-1, nil)
	case !absolute:
		at -= c.Tx.Now()
	}
	return c.ReplyInteger(at/unit+(at%unit+unit/2)/unit, nil)
}

func persist(c *command.Call) error {
	return c.ReplyFlag(c.Tx.Persist(c.Args.Key()), nil)
}
