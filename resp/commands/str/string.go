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
		command.OnKey("get", 2, command.Readonly|command.Fast, "RO access", get),
		command.OnKey("getdel", 2, command.Write|command.Fast, "RW access delete", getdel),
		command.OnKey("strlen", 2, command.Readonly|command.Fast, "RO", strlen),
		&command.Command{Name: "append", Arity: 3, Flags: command.Write | command.DenyOOM | command.Fast,
			Keys: command.OneKey("RW insert"),
			Complexity: "O(1). The amortized time complexity is O(1) assuming the appended value is small and " +
				"the already present value is of any size, since a string grows by more than is needed at once.",
			Run: appendValue},
		command.OnKey("getrange", 4, command.Readonly, "RO access", getrange),
		command.OnKey("substr", 4, command.Readonly, "RO access", getrange),
		&command.Command{Name: "setrange", Arity: 4, Flags: command.Write | command.DenyOOM,
			Keys: command.OneKey("RW update"), Prepare: evictForRange, Run: setrange},
		&command.Command{Name: "mget", Arity: -2, Flags: command.Readonly | command.Fast,
			Keys: []command.KeySpec{command.KeysToEnd("RO access", 1, 1)}, Run: mget},
		&command.Command{Name: "mset", Arity: -3, Flags: command.Write | command.DenyOOM,
			Keys: []command.KeySpec{command.KeysToEnd("OW update", 1, 2)}, Run: mset},
		&command.Command{Name: "msetnx", Arity: -3, Flags: command.Write | command.DenyOOM,
			Keys: []command.KeySpec{command.KeysToEnd("OW insert", 1, 2)}, Run: msetnx},
		command.OnKey("incr", 2, command.Write|command.DenyOOM|command.Fast, "RW access update",
			func(c *command.Call) error { return addTo(c, c.Args.Key(), 1) }),
		command.OnKey("decr", 2, command.Write|command.DenyOOM|command.Fast, "RW access update",
			func(c *command.Call) error { return addTo(c, c.Args.Key(), -1) }),
		command.OnKey("incrby", 3, command.Write|command.DenyOOM|command.Fast, "RW access update",
			command.With(incrby, 1)),
		command.OnKey("decrby", 3, command.Write|command.DenyOOM|command.Fast, "RW access update",
			command.With(incrby, -1)),
		command.OnKey("incrbyfloat", 3, command.Write|command.DenyOOM|command.Fast, "RW access update", incrbyfloat),
	)
}

const errOffsetOutOfRange = engine.Error("ERR offset is out of range")

// open ends the arguments, and returns the string that a key holds.
func open(c *command.Call, k engine.Key) (value []byte, found bool, err error) {
	if err := c.Args.End(); err != nil {
		return nil, false, err
	}
	return c.Tx.Get(k)
}

func get(c *command.Call) error { return c.ReplyOrNull(open(c, c.Args.Key())) }

func getdel(c *command.Call) error {
	k := c.Args.Key()
	value, found, err := open(c, k)
	if err != nil {
		return err
	}

	c.Reply.BulkOrNull(value, found)
	if found {
		c.Tx.Delete(k)
	}
	return nil
}

func strlen(c *command.Call) error {
	value, _, err := open(c, c.Args.Key())
	return c.ReplyCount(len(value), err)
}

func appendValue(c *command.Call) error {
	k, value := c.Args.Key(), c.Args.Next()

	return c.ReplyCount(c.Tx.Append(k, value))
}

// getrange handles GETRANGE key start end, and SUBSTR, its old name.
func getrange(c *command.Call) error {
	k, start, end := c.Args.Key(), c.Args.Integer(), c.Args.Integer()
	value, _, err := open(c, k)
	if err != nil {
		return err
	}

	c.Reply.Bulk(substring(value, start, end))
	return nil
}

// substring returns the bytes from start up to and including end. Negative positions count from the
// end of the value. The range is limited to the value; an end before the first byte means the first
// byte.
func substring(value []byte, start, end int64) []byte {
	length := int64(len(value))
	if start < 0 && end < 0 && start > end {
		return nil
	}
	start, end = fromEnd(start, length), min(fromEnd(end, length), length-1)
	if start > end {
		return nil
	}
	return value[start : end+1]
}

func fromEnd(place, length int64) int64 {
	if place < 0 {
		return max(place+length, 0)
	}
	return place
}

func setrange(c *command.Call) error {
	k, offset, value := c.Args.Key(), c.Args.Integer(), c.Args.Next()
	if offset < 0 {
		c.Args.Fail(errOffsetOutOfRange)
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	return c.ReplyCount(c.Tx.SetRange(k, offset, value))
}

func evictForRange(c *command.Call, words [][]byte) {
	if offset, ok := grammar.ParseInt(words[2]); ok && offset < object.MaxString {
		c.EvictForString(words[1], offset)
	}
}

// mget handles MGET key [key ...]. A key that is not a string counts as missing.
func mget(c *command.Call) error {
	c.Reply.Array(c.Args.Left())
	for c.Args.More() {
		value, found, _ := c.Tx.Get(c.Args.Key())
		c.Reply.BulkOrNull(value, found)
	}
	return c.Args.End()
}

func mset(c *command.Call) error {
	if c.Args.Left()%2 != 0 {
		return c.WrongArity()
	}

	setAll(c)

	return c.ReplyOK(nil)
}

func msetnx(c *command.Call) error {
	if c.Args.Left()%2 != 0 {
		return c.WrongArity()
	}

	free := noneExists(c)
	if free {
		setAll(c)
	}

	return c.ReplyFlag(free, nil)
}

// setAll sets each key to the value that follows it.
func setAll(c *command.Call) {
	for c.Args.More() {
		k := c.Args.Key()
		c.Tx.Set(k, c.Args.Next(), engine.SetMode{})
	}
}

func noneExists(c *command.Call) bool {
	for _, k := range c.Args.Keys {
		if c.Tx.Exists(k) {
			return false
		}
	}
	return true
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
