package str

import (
	"math"
	"math/big"

	"rlserver/engine"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
)

func init() {
	command.Register("string",
		&command.Command{Name: "increx", Arity: -2, Flags: command.Write | command.DenyOOM | command.Fast,
			Keys: command.OneKey("RW access update"),
			Syntax: "key [BYINT increment | BYFLOAT increment] [LBOUND lowerbound] [UBOUND upperbound] " +
				"[SATURATE] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT " +
				"unix-time-milliseconds | PERSIST] [ENX]", Since: "8.8.0", Complexity: "O(1)",
			Summary: "Increments the number of a key within bounds and sets its expiration. A sum outside " +
				"the bounds, or beyond 64 bits, changes nothing and reports an increment of 0: with UBOUND, EX " +
				"and ENX that is a fixed-window limiter in one call", Run: increx},
	)
}

const (
	errENXAlone         = engine.Error("ERR ENX flag requires an expiration")
	errIncrementInteger = engine.Error("ERR Increment is not an integer or out of range")
	errIncrementFloat   = engine.Error("ERR Increment is not a valid float")
	errIncrementInf     = engine.Error("ERR BYFLOAT increment cannot be Infinity")
	errLboundInteger    = engine.Error("ERR LBOUND is not an integer or out of range")
	errUboundInteger    = engine.Error("ERR UBOUND is not an integer or out of range")
	errLboundFloat      = engine.Error("ERR LBOUND is not a valid float")
	errUboundFloat      = engine.Error("ERR UBOUND is not a valid float")
	errBoundsCross      = engine.Error("ERR LBOUND can't be greater than UBOUND")
	errValueInf         = engine.Error("ERR value cannot be Infinity")
	errAppliedOverflow  = engine.Error("ERR applied increment would overflow")
	errAppliedInf       = engine.Error("ERR applied increment would be Infinity")
)

// incrEx holds the options of INCREX.
type incrEx struct {
	by, lower, upper []byte // as given; nil: not given
	float            bool
	saturate         bool
	mode             engine.SetMode
}

// increx handles INCREX. A sum that does not fit its kind, 64-bit integer or long double, is out of
// bounds, and not an error as in INCRBY.
func increx(c *command.Call) error {
	k := c.Args.Key()
	o := incrExOptions(c)
	if o.float {
		return increxFloat(c, k, &o)
	}
	return increxInt(c, k, &o)
}

// incrExOptions takes the options. Unlike in SET, none may be given twice.
func incrExOptions(c *command.Call) (o incrEx) {
	var t ttlOption
	enx := false
	for a := &c.Args; a.More(); {
		switch {
		case o.by == nil && a.Word("BYINT"):
			o.by = a.Next()
		case o.by == nil && a.Word("BYFLOAT"):
			o.by, o.float = a.Next(), true
		case o.lower == nil && a.Word("LBOUND"):
			o.lower = a.Next()
		case o.upper == nil && a.Word("UBOUND"):
			o.upper = a.Next()
		case !o.saturate && a.Word("SATURATE"):
			o.saturate = true
		case !enx && a.Word("ENX"):
			enx = true
		case t.word == ttlNotGiven && parseTtlOption(a, &t, ttlPersist):
		default:
			a.Fail(engine.ErrSyntax)
		}
	}
	switch {
	case enx && t.word == ttlPersist:
		c.Args.Fail(engine.ErrSyntax)
	case enx && t.word == ttlNotGiven:
		c.Args.Fail(errENXAlone)
	}
	o.mode = engine.SetMode{KeepTTL: enx || t.word == ttlNotGiven, ExpireAt: expireAt(c, t)}
	return o
}

func increxInt(c *command.Call, k engine.Key, o *incrEx) error {
	by := parseIntegerIn(&c.Args, o.by, 1, errIncrementInteger)
	lower := parseIntegerIn(&c.Args, o.lower, math.MinInt64, errLboundInteger)
	upper := parseIntegerIn(&c.Args, o.upper, math.MaxInt64, errUboundInteger)
	if lower > upper {
		c.Args.Fail(errBoundsCross)
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	_, old, err := storedInteger(c, k)
	if err != nil {
		return err
	}
	sum, inside := BoundedInt(old, by, lower, upper)
	if !inside && !o.saturate {
		c.Tx.Denied(k)
		c.Reply.Array(2)
		c.Reply.Integer(old)
		return c.ReplyInteger(0, nil)
	}
	applied := sum - old
	if (applied > 0) != (sum > old) {
		return errAppliedOverflow
	}

	c.Tx.Set(k, c.Digits(sum), o.mode)

	c.Reply.Array(2)
	c.Reply.Integer(sum)
	return c.ReplyInteger(applied, nil)
}

// BoundedInt returns old+by, or the bound that the sum exceeds.
func BoundedInt(old, by, lower, upper int64) (sum int64, inside bool) {
	sum, ok := grammar.AddInt(old, by)
	switch {
	case !ok && by > 0 || ok && sum > upper:
		return upper, false
	case !ok || sum < lower:
		return lower, false
	}
	return sum, true
}

// parseIntegerIn parses b, an argument that was taken before; absent is the result if b is nil.
func parseIntegerIn(a *command.Args, b []byte, absent int64, err engine.Error) int64 {
	if b == nil {
		return absent
	}
	n, ok := grammar.ParseInt(b)
	if !ok {
		a.Fail(err)
	}
	return n
}

func increxFloat(c *command.Call, k engine.Key, o *incrEx) error {
	by := c.Args.LongDoubleIn(o.by, nil, errIncrementFloat)
	lower := c.Args.LongDoubleIn(o.lower, leastLongDouble, errLboundFloat)
	upper := c.Args.LongDoubleIn(o.upper, greatestLongDouble, errUboundFloat)
	switch {
	case c.Args.Err != nil:
	case by.IsInf():
		c.Args.Fail(errIncrementInf)
	case lower.Cmp(upper) > 0:
		c.Args.Fail(errBoundsCross)
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	old, err := storedLongDouble(c, k)
	if err != nil {
		return err
	}
	if old.IsInf() {
		return errValueInf
	}
	sum, inside := BoundedFloat(old, by, lower, upper)
	if !inside && !o.saturate {
		c.Tx.Denied(k)
		c.Reply.Array(2)
		c.Reply.DoubleText(grammar.AppendLongDouble(nil, old))
		c.Reply.DoubleText([]byte("0"))
		return nil
	}
	applied, finite := grammar.AddLongDouble(sum, new(big.Float).Neg(old))
	if !finite {
		return errAppliedInf
	}
	text := grammar.AppendLongDouble(nil, sum)
	c.Tx.Set(k, text, o.mode)

	c.Reply.Array(2)
	c.Reply.DoubleText(text)
	c.Reply.DoubleText(grammar.AppendLongDouble(nil, applied))
	return nil
}

// The bounds of BYFLOAT if none are given: C's LDBL_MAX and -LDBL_MAX.
var (
	greatestLongDouble = new(big.Float).SetMantExp(new(big.Float).SetUint64(math.MaxUint64),
		grammar.LongDoubleMaxExp-grammar.LongDoublePrecision)
	leastLongDouble = new(big.Float).Neg(greatestLongDouble)
)

// BoundedFloat returns old+by, both finite, or the bound that the sum exceeds.
func BoundedFloat(old, by, lower, upper *big.Float) (sum *big.Float, inside bool) {
	sum, finite := grammar.AddLongDouble(old, by)
	switch {
	case !finite && by.Sign() > 0 || finite && sum.Cmp(upper) > 0:
		return upper, false
	case !finite || sum.Cmp(lower) < 0:
		return lower, false
	}
	return sum, true
}
