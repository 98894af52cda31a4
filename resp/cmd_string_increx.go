package resp

import (
	"math"
	"math/big"

	"rlserver/engine"
)

func init() {
	register(
		&command{name: "increx", arity: -2, flags: write | denyOOM | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key [BYINT increment | BYFLOAT increment] [LBOUND lowerbound] [UBOUND upperbound] [SATURATE] " +
				"[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] [ENX]",
			group: "string", since: "8.8.0",
			complexity: "O(1)",
			summary: "Increments the number of a key within bounds and sets its expiration. A sum outside the bounds, or beyond 64 bits, " +
				"changes nothing and reports an increment of 0: with UBOUND, EX and ENX that is a fixed-window limiter in one call",
			example: "> INCREX calls:ada UBOUND 2 EX 60 ENX\n1) (integer) 1\n2) (integer) 1\n" +
				"> INCREX calls:ada UBOUND 2 EX 60 ENX\n1) (integer) 2\n2) (integer) 1\n" +
				"> INCREX calls:ada UBOUND 2 EX 60 ENX\n1) (integer) 2\n2) (integer) 0",
			run: increx},
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

// incrEx is what the options of INCREX say.
type incrEx struct {
	by, lower, upper []byte // as given; nil: not given
	float            bool
	saturate         bool
	mode             engine.SetMode
}

// increx handles INCREX key [BYINT increment | BYFLOAT increment] [LBOUND lowerbound] [UBOUND upperbound] [SATURATE]
// [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] [ENX].
//
// A sum that is no number of its kind, 64-bit integer or long double, is out of bounds like any other: it is no error, as it is to INCRBY.
func increx(c *call) error {
	k := c.args.key()
	o := c.incrExOptions()
	if o.float {
		return increxFloat(c, k, &o)
	}
	return increxInt(c, k, &o)
}

// incrExOptions takes the options. Unlike those of SET none may be given twice.
func (c *call) incrExOptions() (o incrEx) {
	var t ttlOption
	enx := false
	for a := &c.args; a.more(); {
		switch {
		case o.by == nil && a.word("BYINT"):
			o.by = a.next()
		case o.by == nil && a.word("BYFLOAT"):
			o.by, o.float = a.next(), true
		case o.lower == nil && a.word("LBOUND"):
			o.lower = a.next()
		case o.upper == nil && a.word("UBOUND"):
			o.upper = a.next()
		case !o.saturate && a.word("SATURATE"):
			o.saturate = true
		case !enx && a.word("ENX"):
			enx = true
		case t.word == ttlUnsaid && a.ttlOption(&t, ttlPersist):
		default:
			a.fail(engine.ErrSyntax)
		}
	}
	switch {
	case enx && t.word == ttlPersist:
		c.args.fail(engine.ErrSyntax)
	case enx && t.word == ttlUnsaid:
		c.args.fail(errENXAlone)
	}
	o.mode = engine.SetMode{KeepTTL: enx || t.word == ttlUnsaid, ExpireAt: c.expireAt(t)}
	return o
}

// increxInt is INCREX in 64-bit integers.
func increxInt(c *call, k engine.Key, o *incrEx) error {
	by := c.args.integerIn(o.by, 1, errIncrementInteger)
	lower := c.args.integerIn(o.lower, math.MinInt64, errLboundInteger)
	upper := c.args.integerIn(o.upper, math.MaxInt64, errUboundInteger)
	if lower > upper {
		c.args.fail(errBoundsCross)
	}
	if err := c.args.end(); err != nil {
		return err
	}

	old, err := c.storedInteger(k)
	if err != nil {
		return err
	}
	sum, inside := boundedInt(old, by, lower, upper)
	if !inside && !o.saturate {
		c.tx.Denied(k)
		c.reply.array(2)
		c.reply.integer(old)
		c.reply.integer(0)
		return nil
	}
	applied := sum - old
	if (applied > 0) != (sum > old) {
		return errAppliedOverflow
	}

	c.reply.array(2)
	text := c.reply.integerText(sum)
	c.reply.integer(applied)
	c.tx.Set(k, text, o.mode)
	return nil
}

// boundedInt is old+by, or the bound that this passes.
func boundedInt(old, by, lower, upper int64) (sum int64, inside bool) {
	sum, ok := addInt(old, by)
	switch {
	case !ok && by > 0 || ok && sum > upper:
		return upper, false
	case !ok || sum < lower:
		return lower, false
	}
	return sum, true
}

// integerIn reads an argument that was taken before; absent is for one that was not given.
func (a *args) integerIn(b []byte, absent int64, err engine.Error) int64 {
	if b == nil {
		return absent
	}
	n, ok := parseInt(b)
	if !ok {
		a.fail(err)
	}
	return n
}

// increxFloat is INCREX in long doubles.
func increxFloat(c *call, k engine.Key, o *incrEx) error {
	by := c.args.longDoubleIn(o.by, nil, errIncrementFloat)
	lower := c.args.longDoubleIn(o.lower, leastLongDouble, errLboundFloat)
	upper := c.args.longDoubleIn(o.upper, greatestLongDouble, errUboundFloat)
	switch {
	case c.args.err != nil:
	case by.IsInf():
		c.args.fail(errIncrementInf)
	case lower.Cmp(upper) > 0:
		c.args.fail(errBoundsCross)
	}
	if err := c.args.end(); err != nil {
		return err
	}

	old, err := c.storedLongDouble(k)
	if err != nil {
		return err
	}
	if old.IsInf() {
		return errValueInf
	}
	sum, inside := boundedFloat(old, by, lower, upper)
	if !inside && !o.saturate {
		c.tx.Denied(k)
		c.reply.array(2)
		c.reply.doubleText(appendHumanFloat(nil, old))
		c.reply.doubleText([]byte("0"))
		return nil
	}
	applied, finite := addLongDouble(sum, new(big.Float).Neg(old))
	if !finite {
		return errAppliedInf
	}
	text := appendHumanFloat(nil, sum)
	c.tx.Set(k, text, o.mode)

	c.reply.array(2)
	c.reply.doubleText(text)
	c.reply.doubleText(appendHumanFloat(nil, applied))
	return nil
}

// The bounds of BYFLOAT where none are given: C's LDBL_MAX, and what is as far below zero.
var (
	greatestLongDouble = new(big.Float).SetMantExp(new(big.Float).SetUint64(math.MaxUint64), longDoubleMaxExp-longDoublePrecision)
	leastLongDouble    = new(big.Float).Neg(greatestLongDouble)
)

// boundedFloat is old+by, both finite, or the bound that this passes.
func boundedFloat(old, by, lower, upper *big.Float) (sum *big.Float, inside bool) {
	sum, finite := addLongDouble(old, by)
	switch {
	case !finite && by.Sign() > 0 || finite && sum.Cmp(upper) > 0:
		return upper, false
	case !finite || sum.Cmp(lower) < 0:
		return lower, false
	}
	return sum, true
}

func (a *args) longDoubleIn(b []byte, absent *big.Float, err engine.Error) *big.Float {
	if b == nil {
		return absent
	}
	f, ok := parseLongDouble(b)
	if !ok {
		a.fail(err)
	}
	return f
}
