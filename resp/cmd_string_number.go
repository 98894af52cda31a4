package resp

import (
	"bytes"
	"math"
	"math/big"

	"rlserver/engine"
)

func init() {
	register(
		&command{name: "incr", arity: 2, flags: write | denyOOM | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key", group: "string", since: "1.0.0",
			complexity: "O(1)",
			summary:    "Increment the integer value of a key by one",
			run:        func(c *call) error { return incr(c, 1) }},
		&command{name: "decr", arity: 2, flags: write | denyOOM | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key", group: "string", since: "1.0.0",
			complexity: "O(1)",
			summary:    "Decrement the integer value of a key by one",
			run:        func(c *call) error { return incr(c, -1) }},
		&command{name: "incrby", arity: 3, flags: write | denyOOM | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key increment", group: "string", since: "1.0.0",
			complexity: "O(1)",
			summary:    "Increment the integer value of a key by the given amount",
			run:        func(c *call) error { return incrby(c, 1) }},
		&command{name: "decrby", arity: 3, flags: write | denyOOM | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key decrement", group: "string", since: "1.0.0",
			complexity: "O(1)",
			summary:    "Decrement the integer value of a key by the given number",
			run:        func(c *call) error { return incrby(c, -1) }},
		&command{name: "incrbyfloat", arity: 3, flags: write | denyOOM | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key increment", group: "string", since: "2.6.0",
			complexity: "O(1)",
			summary:    "Increment the float value of a key by the given amount",
			run:        incrbyfloat},
	)
}

const errDecrementOverflow = engine.Error("ERR decrement would overflow")

// incr handles INCR key and DECR key.
func incr(c *call, by int64) error {
	k := c.args.key()
	if err := c.args.end(); err != nil {
		return err
	}

	return c.addTo(k, by)
}

// incrby handles INCRBY key increment and DECRBY key decrement.
func incrby(c *call, sign int64) error {
	k, by := c.args.key(), c.args.integer()
	if sign < 0 && by == math.MinInt64 {
		c.args.fail(errDecrementOverflow)
	}
	if err := c.args.end(); err != nil {
		return err
	}

	return c.addTo(k, sign*by)
}

// addTo adds to the integer that a string spells and answers with the sum. The sum's text is written once, into the reply,
// and stored from there.
func (c *call) addTo(k engine.Key, by int64) error {
	old, err := c.storedInteger(k)
	if err != nil {
		return err
	}
	sum, ok := addInt(old, by)
	if !ok {
		return engine.ErrOverflow
	}

	text := c.reply.integerText(sum)
	c.tx.Set(k, text, engine.SetMode{KeepTTL: true})
	return nil
}

// storedInteger is the integer that a string spells; 0 for a missing key.
func (c *call) storedInteger(k engine.Key) (int64, error) {
	value, found, err := c.tx.Get(k)
	if err != nil || !found {
		return 0, err
	}
	n, ok := parseInt(value)
	if !ok {
		return 0, engine.ErrNotInteger
	}
	return n, nil
}

// integerText answers with a whole number and gives its digits, where they stand in the reply: they hold until that is sent.
func (r *reply) integerText(n int64) []byte {
	r.integer(n)
	end := len(r.b) - len("\r\n")
	return r.b[bytes.LastIndexByte(r.b[:end], ':')+1 : end]
}

// incrbyfloat handles INCRBYFLOAT key increment.
func incrbyfloat(c *call) error {
	k, increment := c.args.key(), c.args.next()
	if err := c.args.end(); err != nil {
		return err
	}

	old, err := c.storedLongDouble(k)
	if err != nil {
		return err
	}
	by, ok := parseLongDouble(increment)
	if !ok {
		return engine.ErrNotFloat
	}
	sum, ok := addLongDouble(old, by)
	if !ok {
		return engine.ErrNaNOrInfinity
	}
	text := appendHumanFloat(nil, sum)
	c.tx.Set(k, text, engine.SetMode{KeepTTL: true})

	c.reply.bulk(text)
	return nil
}

// storedLongDouble is the number that a string spells, which may be infinite; 0 for a missing key.
func (c *call) storedLongDouble(k engine.Key) (*big.Float, error) {
	value, found, err := c.tx.Get(k)
	if err != nil || !found {
		return new(big.Float), err
	}
	f, ok := parseLongDouble(value)
	if !ok {
		return nil, engine.ErrNotFloat
	}
	return f, nil
}
