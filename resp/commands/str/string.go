package str

import (
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
