package str

import (
	"math"
	"math/big"

	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
)

func init() {
	command.Register("string",
		command.OnKey("incr", 2, command.Write|command.DenyOOM|command.Fast, "RW access update",
			func(c *command.Call) error { return addTo(c, c.Args.Key(), 1) }),
		command.OnKey("decr", 2, command.Write|command.DenyOOM|command.Fast, "RW access update",
			func(c *command.Call) error { return addTo(c, c.Args.Key(), -1) }),
		command.OnKey("incrby", 3, command.Write|command.DenyOOM|command.Fast, "RW access update",
			func(c *command.Call) error { return incrby(c, 1) }),
		command.OnKey("decrby", 3, command.Write|command.DenyOOM|command.Fast, "RW access update",
			func(c *command.Call) error { return incrby(c, -1) }),
		command.OnKey("incrbyfloat", 3, command.Write|command.DenyOOM|command.Fast, "RW access update", incrbyfloat),
	)
}

const errDecrementOverflow = engine.Error("ERR decrement would overflow")

// incrby handles INCRBY key increment and DECRBY key decrement.
func incrby(c *command.Call, sign int64) error {
	k, by := c.Args.Key(), c.Args.Integer()
	if sign < 0 && by == math.MinInt64 {
		c.Args.Fail(errDecrementOverflow)
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	return addTo(c, k, sign*by)
}

// addTo adds to the integer in a string and replies with the sum, as INCR key and DECR key do.
func addTo(c *command.Call, k engine.Key, by int64) error {
	s, old, err := storedInteger(c, k)
	if err != nil {
		return err
	}
	sum, ok := grammar.AddInt(old, by)
	if !ok {
		return engine.ErrOverflow
	}

	if s != nil {
		c.Tx.Replace(k, s, c.Digits(sum))
	} else {
		c.Tx.Set(k, c.Digits(sum), engine.SetMode{})
	}

	return c.ReplyInteger(sum, nil)
}

// storedInteger returns a string and the integer in it; nil and 0 for a missing key.
func storedInteger(c *command.Call, k engine.Key) (s *object.String, n int64, err error) {
	if s, err = c.Tx.String(k); s == nil {
		return nil, 0, err
	}
	n, ok := grammar.ParseInt(s.Value)
	if !ok {
		return nil, 0, engine.ErrNotInteger
	}
	return s, n, nil
}

func incrbyfloat(c *command.Call) error {
	k, increment := c.Args.Key(), c.Args.Next()
	old, err := storedLongDouble(c, k)
	if err != nil {
		return err
	}
	by, ok := grammar.ParseLongDouble(increment)
	if !ok {
		return engine.ErrNotFloat
	}
	sum, ok := grammar.AddLongDouble(old, by)
	if !ok {
		return engine.ErrNaNOrInfinity
	}
	text := grammar.AppendLongDouble(nil, sum)
	c.Tx.Set(k, text, engine.SetMode{KeepTTL: true})

	c.Reply.Bulk(text)
	return nil
}

// storedLongDouble returns the number in a string, which may be infinite; 0 for a missing key.
func storedLongDouble(c *command.Call, k engine.Key) (*big.Float, error) {
	value, found, err := c.Tx.Get(k)
	if err != nil || !found {
		return new(big.Float), err
	}
	f, ok := grammar.ParseLongDouble(value)
	if !ok {
		return nil, engine.ErrNotFloat
	}
	return f, nil
}
