package resp

import "rlserver/engine"

func init() {
	register(
		&command{name: "get", arity: 2, flags: readonly | fast, keys: []keySpec{key("RO access", 1)},
			syntax: "key", group: "string", since: "1.0.0",
			complexity: "O(1)",
			summary:    "Get the value of a key",
			run:        get},
		&command{name: "getdel", arity: 2, flags: write | fast, keys: []keySpec{key("RW access delete", 1)},
			syntax: "key", group: "string", since: "6.2.0",
			complexity: "O(1)",
			summary:    "Get the value of a key and delete the key",
			run:        getdel},
		&command{name: "strlen", arity: 2, flags: readonly | fast, keys: []keySpec{key("RO", 1)},
			syntax: "key", group: "string", since: "2.2.0",
			complexity: "O(1)",
			summary:    "Get the length of the value stored in a key",
			run:        strlen},
		&command{name: "append", arity: 3, flags: write | denyOOM | fast, keys: []keySpec{key("RW insert", 1)},
			syntax: "key value", group: "string", since: "2.0.0",
			complexity: "O(1). The amortized time complexity is O(1) assuming the appended value is small and the already present value is of any size, since the space of a string grows by more than is needed at once.",
			summary:    "Append a value to a key",
			run:        appendValue},
		&command{name: "getrange", arity: 4, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key start end", group: "string", since: "2.4.0",
			complexity: "O(N) where N is the length of the returned string. The complexity is ultimately determined by the returned length, but because creating a substring from an existing string is very cheap, it can be considered O(1) for small strings.",
			summary:    "Get a substring of the string stored at a key",
			run:        getrange},
		&command{name: "substr", arity: 4, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key start end", group: "string", since: "1.0.0", deprecated: "2.0.0", replacedBy: "`GETRANGE`",
			complexity: "O(N) where N is the length of the returned string. The complexity is ultimately determined by the returned length, but because creating a substring from an existing string is very cheap, it can be considered O(1) for small strings.",
			summary:    "Get a substring of the string stored at a key",
			run:        getrange},
		&command{name: "setrange", arity: 4, flags: write | denyOOM, keys: []keySpec{key("RW update", 1)},
			syntax: "key offset value", group: "string", since: "2.2.0",
			complexity: "O(1), not counting the time taken to copy the new string in place. Usually, this string is very small so the amortized complexity is O(1). Otherwise, complexity is O(M) with M being the length of the value argument.",
			summary:    "Overwrite part of a string at key starting at the specified offset",
			prepare:    roomForRange,
			run:        setrange},
		&command{name: "mget", arity: -2, flags: readonly | fast, keys: []keySpec{keysToEnd("RO access", 1, 1)},
			syntax: "key [key ...]", group: "string", since: "1.0.0",
			complexity: "O(N) where N is the number of keys to retrieve.",
			summary:    "Get the values of all the given keys",
			tips:       "request_policy:multi_shard",
			run:        mget},
		&command{name: "mset", arity: -3, flags: write | denyOOM, keys: []keySpec{keysToEnd("OW update", 1, 2)},
			syntax: "key value [key value ...]", group: "string", since: "1.0.1",
			complexity: "O(N) where N is the number of keys to set.",
			summary:    "Set multiple keys to multiple values",
			tips:       "request_policy:multi_shard response_policy:all_succeeded",
			run:        mset},
		&command{name: "msetnx", arity: -3, flags: write | denyOOM, keys: []keySpec{keysToEnd("OW insert", 1, 2)},
			syntax: "key value [key value ...]", group: "string", since: "1.0.1",
			complexity: "O(N) where N is the number of keys to set.",
			summary:    "Set multiple keys to multiple values, only if none of the keys exist",
			tips:       "request_policy:multi_shard response_policy:agg_min",
			run:        msetnx},
	)
}

const errOffsetOutOfRange = engine.Error("ERR offset is out of range")

// get handles GET key.
func get(c *call) error {
	k := c.args.key()
	if err := c.args.end(); err != nil {
		return err
	}

	value, found, err := c.tx.Get(k)
	if err != nil {
		return err
	}

	c.reply.bulkOrNull(value, found)
	return nil
}

func (r *reply) bulkOrNull(value []byte, found bool) {
	if found {
		r.bulk(value)
	} else {
		r.null()
	}
}

// getdel handles GETDEL key.
func getdel(c *call) error {
	k := c.args.key()
	if err := c.args.end(); err != nil {
		return err
	}

	value, found, err := c.tx.Get(k)
	if err != nil {
		return err
	}

	c.reply.bulkOrNull(value, found)
	if found {
		c.tx.Delete(k)
	}
	return nil
}

// strlen handles STRLEN key.
func strlen(c *call) error {
	k := c.args.key()
	if err := c.args.end(); err != nil {
		return err
	}

	value, _, err := c.tx.Get(k)
	if err != nil {
		return err
	}

	c.reply.count(len(value))
	return nil
}

// appendValue handles APPEND key value.
func appendValue(c *call) error {
	k, value := c.args.key(), c.args.next()
	if err := c.args.end(); err != nil {
		return err
	}

	length, err := c.tx.Append(k, value)
	if err != nil {
		return err
	}

	c.reply.count(length)
	return nil
}

// getrange handles GETRANGE key start end, and SUBSTR, its old name.
func getrange(c *call) error {
	k, start, end := c.args.key(), c.args.integer(), c.args.integer()
	if err := c.args.end(); err != nil {
		return err
	}

	value, _, err := c.tx.Get(k)
	if err != nil {
		return err
	}

	c.reply.bulk(substring(value, start, end))
	return nil
}

// substring is what stands from start up to and including end. Negative places count from the end of the value; what lies outside of
// it is left out, but an end before the first byte stands for the first byte.
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

// setrange handles SETRANGE key offset value.
func setrange(c *call) error {
	k, offset, value := c.args.key(), c.args.integer(), c.args.next()
	if offset < 0 {
		c.args.fail(errOffsetOutOfRange)
	}
	if err := c.args.end(); err != nil {
		return err
	}

	length, err := c.tx.SetRange(k, offset, value)
	if err != nil {
		return err
	}

	c.reply.count(length)
	return nil
}

func roomForRange(c *call, words [][]byte) {
	if offset, ok := parseInt(words[2]); ok && offset < engine.MaxString {
		c.makeRoomToStretch(words[1], offset)
	}
}

// mget handles MGET key [key ...]. What is no string counts as missing.
func mget(c *call) error {
	c.reply.array(c.args.left())
	for c.args.more() {
		value, found, _ := c.tx.Get(c.args.key())
		c.reply.bulkOrNull(value, found)
	}
	return c.args.end()
}

// mset handles MSET key value [key value ...].
func mset(c *call) error {
	if c.args.left()%2 != 0 {
		return c.wrongArity()
	}

	c.setAll()

	c.reply.ok()
	return nil
}

// msetnx handles MSETNX key value [key value ...].
func msetnx(c *call) error {
	if c.args.left()%2 != 0 {
		return c.wrongArity()
	}

	free := c.noneExists()
	if free {
		c.setAll()
	}

	c.reply.flag(free)
	return nil
}

// setAll sets each key to the value that follows it.
func (c *call) setAll() {
	for c.args.more() {
		k := c.args.key()
		c.tx.Set(k, c.args.next(), engine.SetMode{})
	}
}

func (c *call) noneExists() bool {
	for _, k := range c.args.keys {
		if c.tx.Exists(k) {
			return false
		}
	}
	return true
}

// wrongArity refuses a number of arguments that the command's declaration cannot.
func (c *call) wrongArity() engine.Error {
	return engine.Error("ERR wrong number of arguments for '" + c.command.fullName() + "' command")
}
