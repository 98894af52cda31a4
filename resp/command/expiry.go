package command

import (
	"math"

	"rlserver/engine"
	"rlserver/internal/grammar"
)

// Deadline parses an amount of time of at least least, in units of unit ms, and returns the
// deadline in Unix ms. The deadline may have passed. It fails if the amount is out of range or the
// deadline does not fit in 64 bits.
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
		c.Args.Fail(engine.Error("ERR invalid expire time in '" + c.Command.FullName() + "' command"))
		return 0
	}
	return now + n*unit
}
