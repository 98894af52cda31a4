package command

import (
	"math"
	"rlserver/engine"
	"rlserver/resp/grammar"
)

// Deadline makes out a point in time, Unix ms, from a number, least or more, of units of so many ms. It may have passed, but must be
// one that 64 bits can tell.
func (c *Call) Deadline(amount []byte, least, unit int64, absolute bool) int64 {
	n, ok := grammar.ParseInt(amount)
	if !ok {
		c.Args.Fail(engine.ErrNotInteger)
		return 0
	}
	now := c.Tx.Now()
	if absolute {
		now = 0
	}
	if n < least || n > math.MaxInt64/unit || n < math.MinInt64/unit || n*unit > math.MaxInt64-now {
		c.Args.Fail(c.invalidExpireTime())
		return 0
	}
	return now + n*unit
}

// invalidExpireTime is what is said of a time that a key cannot expire at.
func (c *Call) invalidExpireTime() engine.Error {
	return engine.Error("ERR invalid expire time in '" + c.Command.FullName() + "' command")
}
