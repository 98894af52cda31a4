package resp

import (
	"iter"

	"rlserver/engine"
)

func init() {
	register(
		&command{name: "hset", arity: -4, flags: write | denyOOM | fast, keys: []keySpec{key("RW update", 1)},
			syntax: "key field value [field value ...]", group: "hash", since: "2.0.0",
			complexity: "O(1) for each field/value pair added, so O(N) to add N field/value pairs when the command is called with multiple field/value pairs.",
			summary:    "Set the string value of a hash field",
			run:        hset},
		&command{name: "hmset", arity: -4, flags: write | denyOOM | fast, keys: []keySpec{key("RW update", 1)},
			syntax: "key field value [field value ...]", group: "hash", since: "2.0.0",
			deprecated: "4.0.0", replacedBy: "`HSET` with multiple field-value pairs",
			complexity: "O(N) where N is the number of fields being set.",
			summary:    "Set multiple hash fields to multiple values",
			run:        hmset},
		&command{name: "hsetnx", arity: 4, flags: write | denyOOM | fast, keys: []keySpec{key("RW insert", 1)},
			syntax: "key field value", group: "hash", since: "2.0.0",
			complexity: "O(1)",
			summary:    "Set the value of a hash field, only if the field does not exist",
			run:        hsetnx},
		&command{name: "hget", arity: 3, flags: readonly | fast, keys: []keySpec{key("RO access", 1)},
			syntax: "key field", group: "hash", since: "2.0.0",
			complexity: "O(1)",
			summary:    "Get the value of a hash field",
			run:        hget},
		&command{name: "hmget", arity: -3, flags: readonly | fast, keys: []keySpec{key("RO access", 1)},
			syntax: "key field [field ...]", group: "hash", since: "2.0.0",
			complexity: "O(N) where N is the number of fields being requested.",
			summary:    "Get the values of all the given hash fields",
			run:        hmget},
		&command{name: "hgetall", arity: 2, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key", group: "hash", since: "2.0.0",
			complexity: "O(N) where N is the size of the hash.",
			summary:    "Get all the fields and values in a hash",
			tips:       "nondeterministic_output_order",
			run:        hgetall},
		&command{name: "hkeys", arity: 2, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key", group: "hash", since: "2.0.0",
			complexity: "O(N) where N is the size of the hash.",
			summary:    "Get all the fields in a hash",
			tips:       "nondeterministic_output_order",
			run:        hkeys},
		&command{name: "hvals", arity: 2, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key", group: "hash", since: "2.0.0",
			complexity: "O(N) where N is the size of the hash.",
			summary:    "Get all the values in a hash",
			tips:       "nondeterministic_output_order",
			run:        hvals},
		&command{name: "hlen", arity: 2, flags: readonly | fast, keys: []keySpec{key("RO", 1)},
			syntax: "key", group: "hash", since: "2.0.0",
			complexity: "O(1)",
			summary:    "Get the number of fields in a hash",
			run:        hlen},
		&command{name: "hexists", arity: 3, flags: readonly | fast, keys: []keySpec{key("RO", 1)},
			syntax: "key field", group: "hash", since: "2.0.0",
			complexity: "O(1)",
			summary:    "Determine if a hash field exists",
			run:        hexists},
		&command{name: "hstrlen", arity: 3, flags: readonly | fast, keys: []keySpec{key("RO", 1)},
			syntax: "key field", group: "hash", since: "3.2.0",
			complexity: "O(1)",
			summary:    "Get the length of the value of a hash field",
			run:        hstrlen},
		&command{name: "hdel", arity: -3, flags: write | fast, keys: []keySpec{key("RW delete", 1)},
			syntax: "key field [field ...]", group: "hash", since: "2.0.0",
			complexity: "O(N) where N is the number of fields to be removed.",
			summary:    "Delete one or more hash fields",
			run:        hdel},
		&command{name: "hgetdel", arity: -5, flags: write | fast, keys: []keySpec{key("RW access delete", 1)},
			syntax: "key FIELDS numfields field [field ...]", group: "hash", since: "8.0.0",
			complexity: "O(N) where N is the number of specified fields",
			summary:    "Returns the value of a field and deletes it from the hash.",
			run:        hgetdel},
		&command{name: "hincrby", arity: 4, flags: write | denyOOM | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key field increment", group: "hash", since: "2.0.0",
			complexity: "O(1)",
			summary:    "Increment the integer value of a hash field by the given number",
			run:        hincrby},
		&command{name: "hincrbyfloat", arity: 4, flags: write | denyOOM | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key field increment", group: "hash", since: "2.6.0",
			complexity: "O(1)",
			summary:    "Increment the float value of a hash field by the given amount",
			run:        hincrbyfloat},
		&command{name: "hscan", arity: -3, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key cursor [MATCH pattern] [COUNT count] [NOVALUES]", group: "hash", since: "2.8.0",
			complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection..",
			summary:    "Incrementally iterate hash fields and associated values",
			tips:       "nondeterministic_output",
			run:        hscan},
		&command{name: "hrandfield", arity: -2, flags: readonly, keys: []keySpec{key("RO access", 1)},
			syntax: "key [count [WITHVALUES]]", group: "hash", since: "6.2.0",
			complexity: "O(N) where N is the number of fields returned",
			summary:    "Get one or multiple random fields from a hash",
			tips:       "nondeterministic_output",
			run:        hrandfield},
	)
}

const (
	errNaNOrInf       = engine.Error("ERR value is NaN or Infinity")
	errNoFields       = engine.Error("ERR Mandatory argument FIELDS is missing or not at the right position")
	errFieldCount     = engine.Error("ERR Number of fields must be a positive integer")
	errFieldsMismatch = engine.Error("ERR The `numfields` parameter must match the number of arguments")
)

// hset handles HSET key field value [field value ...].
func hset(c *call) error {
	added, err := c.setFields()
	if err != nil {
		return err
	}

	c.reply.count(added)
	return nil
}

// hmset handles HMSET key field value [field value ...].
func hmset(c *call) error {
	if _, err := c.setFields(); err != nil {
		return err
	}

	c.reply.ok()
	return nil
}

func (c *call) setFields() (added int, err error) {
	k, pairs := c.args.key(), c.args.rest()
	if len(pairs)%2 != 0 {
		return 0, c.wrongArity()
	}
	if err := c.args.end(); err != nil {
		return 0, err
	}
	return c.tx.HSet(k, pairs)
}

// rest takes all arguments that are left.
func (a *args) rest() [][]byte {
	if a.err != nil {
		return nil
	}
	all := a.list
	a.list = nil
	return all
}

// hsetnx handles HSETNX key field value.
func hsetnx(c *call) error {
	k, pair := c.args.key(), c.args.rest()
	if err := c.args.end(); err != nil {
		return err
	}

	h, err := c.tx.Hash(k)
	if err != nil {
		return err
	}
	added := 0
	if _, exists := h.Get(pair[0]); !exists {
		added, err = c.tx.HSet(k, pair)
	}
	if err != nil {
		return err
	}

	c.reply.count(added)
	return nil
}

// hget handles HGET key field.
func hget(c *call) error {
	h, field, err := c.hashField()
	if err != nil {
		return err
	}

	value, found := h.Get(field)

	c.reply.stringOrNull(value, found)
	return nil
}

// hashField parses the arguments of commands that look at one field.
func (c *call) hashField() (engine.Hash, []byte, error) {
	k, field := c.args.key(), c.args.next()
	if err := c.args.end(); err != nil {
		return engine.Hash{}, nil, err
	}
	h, err := c.tx.Hash(k)
	return h, field, err
}

func (r *reply) stringOrNull(value string, found bool) {
	if found {
		r.bulkString(value)
	} else {
		r.null()
	}
}

// hexists handles HEXISTS key field.
func hexists(c *call) error {
	h, field, err := c.hashField()
	if err != nil {
		return err
	}

	_, found := h.Get(field)

	c.reply.flag(found)
	return nil
}

// hstrlen handles HSTRLEN key field.
func hstrlen(c *call) error {
	h, field, err := c.hashField()
	if err != nil {
		return err
	}

	value, _ := h.Get(field)

	c.reply.count(len(value))
	return nil
}

// hmget handles HMGET key field [field ...].
func hmget(c *call) error {
	k, fields := c.args.key(), c.args.rest()
	if err := c.args.end(); err != nil {
		return err
	}

	h, err := c.tx.Hash(k)
	if err != nil {
		return err
	}

	c.reply.array(len(fields))
	for _, field := range fields {
		value, found := h.Get(field)
		c.reply.stringOrNull(value, found)
	}
	return nil
}

// wholeHash parses the arguments of commands that look at all fields.
func (c *call) wholeHash() (engine.Hash, error) {
	k := c.args.key()
	if err := c.args.end(); err != nil {
		return engine.Hash{}, err
	}
	return c.tx.Hash(k)
}

// hgetall handles HGETALL key.
func hgetall(c *call) error {
	h, err := c.wholeHash()
	if err != nil {
		return err
	}

	c.fields(h, (*reply).mapping, func(field, value string) {
		c.reply.bulkString(field)
		c.reply.bulkString(value)
	})
	return nil
}

// hkeys handles HKEYS key.
func hkeys(c *call) error {
	h, err := c.wholeHash()
	if err != nil {
		return err
	}

	c.fields(h, (*reply).array, func(field, _ string) { c.reply.bulkString(field) })
	return nil
}

// hvals handles HVALS key.
func hvals(c *call) error {
	h, err := c.wholeHash()
	if err != nil {
		return err
	}

	c.fields(h, (*reply).array, func(_, value string) { c.reply.bulkString(value) })
	return nil
}

// fields answers with all fields of a hash, of a large one when the locks are let go.
func (c *call) fields(h engine.Hash, begin func(*reply, int), tell func(field, value string)) {
	n, all := h.Len(), h.All()
	write := func(c *call) error {
		begin(&c.reply, n)
		for field, value := range all {
			tell(field, value)
		}
		return nil
	}
	if n > longReply {
		all = h.Keep()
		c.postpone(write)
		return
	}
	write(c)
}

// hlen handles HLEN key.
func hlen(c *call) error {
	h, err := c.wholeHash()
	if err != nil {
		return err
	}

	c.reply.count(h.Len())
	return nil
}

// hdel handles HDEL key field [field ...].
func hdel(c *call) error {
	k, fields := c.args.key(), c.args.rest()
	if err := c.args.end(); err != nil {
		return err
	}

	removed, err := c.tx.HDel(k, fields)
	if err != nil {
		return err
	}

	c.reply.count(removed)
	return nil
}

// hgetdel handles HGETDEL key FIELDS numfields field [field ...].
func hgetdel(c *call) error {
	k := c.args.key()
	h, err := c.tx.Hash(k)
	if err != nil {
		return err
	}
	if !c.args.word("FIELDS") {
		return errNoFields
	}
	if n := c.args.positive(errFieldCount); c.args.err == nil && n != int64(c.args.left()) {
		c.args.fail(errFieldsMismatch)
	}
	fields := c.args.rest()
	if err := c.args.end(); err != nil {
		return err
	}

	c.reply.array(len(fields))
	for i, field := range fields {
		value, found := h.Get(field)
		c.reply.stringOrNull(value, found)
		if _, err := c.tx.HDel(k, fields[i:i+1]); err != nil {
			return err
		}
		if h, err = c.tx.Hash(k); err != nil {
			return err
		}
	}
	return nil
}

// hincrby handles HINCRBY key field increment. As in addTo, the sum's text is stored from the reply.
func hincrby(c *call) error {
	k, field, by := c.args.key(), c.args.next(), c.args.integer()
	if err := c.args.end(); err != nil {
		return err
	}

	h, err := c.tx.Hash(k)
	if err != nil {
		return err
	}
	var old int64
	if value, found := h.Get(field); found {
		if old, found = parseInt([]byte(value)); !found {
			return engine.ErrHashNotInteger
		}
	}
	sum, ok := addInt(old, by)
	if !ok {
		return engine.ErrOverflow
	}

	text := c.reply.integerText(sum)
	_, err = c.tx.HSet(k, [][]byte{field, text})
	return err
}

// hincrbyfloat handles HINCRBYFLOAT key field increment.
func hincrbyfloat(c *call) error {
	k, field := c.args.key(), c.args.next()
	by := c.args.longDoubleIn(c.args.next(), nil, engine.ErrNotFloat)
	if c.args.err == nil && by.IsInf() {
		c.args.fail(errNaNOrInf)
	}
	if err := c.args.end(); err != nil {
		return err
	}

	h, err := c.tx.Hash(k)
	if err != nil {
		return err
	}
	sum := by
	if value, found := h.Get(field); found {
		old, ok := parseLongDouble([]byte(value))
		if !ok {
			return engine.ErrHashNotFloat
		}
		if sum, ok = addLongDouble(old, by); !ok {
			return engine.ErrNaNOrInfinity
		}
	}
	text := appendHumanFloat(nil, sum)
	if _, err := c.tx.HSet(k, [][]byte{field, text}); err != nil {
		return err
	}

	c.reply.bulk(text)
	return nil
}

// hscan handles HSCAN key cursor [MATCH pattern] [COUNT count]. As in Redis a missing key is answered before the options are looked at.
func hscan(c *call) error {
	k, cursor := c.args.key(), c.args.cursor()
	if c.args.err != nil {
		return c.args.err
	}
	h, err := c.tx.Hash(k)
	if err != nil {
		return err
	}
	if h.Len() == 0 {
		c.reply.closeScan(c.reply.later(), 0, 0)
		return nil
	}
	options := c.args.scanOptions("", true)
	if err := c.args.end(); err != nil {
		return err
	}

	var found []element
	next := h.Scan(cursor, min(options.count, mostScanned), func(field, value string) {
		found = append(found, element{name: field, value: value})
	})

	return c.elements(options, next, found, func(r *reply, e element) { r.bulkString(e.value) })
}

// hrandfield handles HRANDFIELD key [count [WITHVALUES]].
func hrandfield(c *call) error {
	k := c.args.key()
	if !c.args.more() {
		return hrandfieldOne(c, k)
	}
	n, withValues := c.args.picks("WITHVALUES")
	if err := c.args.end(); err != nil {
		return err
	}

	h, err := c.tx.Hash(k)
	if err != nil {
		return err
	}

	switch {
	case n >= 0:
		c.reply.hashFields(int(min(n, int64(h.Len()))), h.Sample(c.random, n), withValues)
	case h.Len() == 0:
		c.reply.array(0)
	default:
		c.reply.hashFields(int(-n), h.Pick(c.random, int(-n)), withValues)
	}
	return nil
}

func hrandfieldOne(c *call, k engine.Key) error {
	h, err := c.tx.Hash(k)
	if err != nil {
		return err
	}

	field, _, found := h.Random(c.random)

	c.reply.stringOrNull(field, found)
	return nil
}

// hashFields answers with n fields, and with their values too: flat in RESP2, in pairs in RESP3.
func (r *reply) hashFields(n int, fields iter.Seq2[string, string], withValues bool) {
	if withValues && !r.resp3 {
		r.array(2 * n)
	} else {
		r.array(n)
	}
	for field, value := range fields {
		if withValues && r.resp3 {
			r.array(2)
		}
		r.bulkString(field)
		if withValues {
			r.bulkString(value)
		}
	}
}
