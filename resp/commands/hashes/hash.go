package hashes

import (
	"iter"

	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

func init() {
	command.Register("hash",
		command.OnKey("hset", -4, command.Write|command.DenyOOM|command.Fast, "RW update", hset),
		command.OnKey("hmset", -4, command.Write|command.DenyOOM|command.Fast, "RW update", hmset),
		command.OnKey("hsetnx", 4, command.Write|command.DenyOOM|command.Fast, "RW insert", hsetnx),
		command.OnKey("hget", 3, command.Readonly|command.Fast, "RO access", hget),
		command.OnKey("hmget", -3, command.Readonly|command.Fast, "RO access", hmget),
		command.OnKey("hgetall", 2, command.Readonly, "RO access", hgetall),
		command.OnKey("hkeys", 2, command.Readonly, "RO access", hkeys),
		command.OnKey("hvals", 2, command.Readonly, "RO access", hvals),
		command.OnKey("hlen", 2, command.Readonly|command.Fast, "RO", command.Length((*engine.Tx).Hash)),
		command.OnKey("hexists", 3, command.Readonly|command.Fast, "RO", hexists),
		command.OnKey("hstrlen", 3, command.Readonly|command.Fast, "RO", hstrlen),
		command.OnKey("hdel", -3, command.Write|command.Fast, "RW delete", hdel),
		&command.Command{Name: "hgetdel", Arity: -5, Flags: command.Write | command.Fast,
			Keys: command.OneKey("RW access delete"), Syntax: "key FIELDS numfields field [field ...]",
			Since: "8.0.0", Complexity: "O(N) where N is the number of specified fields",
			Summary: "Returns the value of a field and deletes it from the hash.", Run: hgetdel},
		command.OnKey("hincrby", 4, command.Write|command.DenyOOM|command.Fast, "RW access update", hincrby),
		command.OnKey("hincrbyfloat", 4, command.Write|command.DenyOOM|command.Fast, "RW access update", hincrbyfloat),
		&command.Command{Name: "hscan", Arity: -3, Flags: command.Readonly, Keys: command.OneKey("RO access"),
			Syntax: "key cursor [MATCH pattern] [COUNT count] [NOVALUES]", Run: hscan},
		command.OnKey("hrandfield", -2, command.Readonly, "RO access", hrandfield),
	)
}

const (
	errNaNOrInf       = engine.Error("ERR value is NaN or Infinity")
	errNoFields       = engine.Error("ERR Mandatory argument FIELDS is missing or not at the right position")
	errFieldCount     = engine.Error("ERR Number of fields must be a positive integer")
	errFieldsMismatch = engine.Error("ERR The `numfields` parameter must match the number of arguments")
)

func hset(c *command.Call) error {
	return c.ReplyCount(setFields(c))
}

func hmset(c *command.Call) error {
	_, err := setFields(c)
	return c.ReplyOK(err)
}

func setFields(c *command.Call) (added int, err error) {
	k, pairs := c.Args.Key(), c.Args.Rest()
	if len(pairs)%2 != 0 {
		return 0, c.WrongArity()
	}
	return c.Tx.HSet(k, pairs)
}

func hsetnx(c *command.Call) error {
	k, pair := c.Args.Key(), c.Args.Rest()
	h, err := open(c, k)
	if err != nil {
		return err
	}
	added := 0
	if _, exists := h.Get(pair[0]); !exists {
		added, err = c.Tx.HSet(k, pair)
	}
	return c.ReplyCount(added, err)
}

// open ends the arguments, and returns the hash that a key holds.
func open(c *command.Call, k engine.Key) (object.HashView, error) {
	if err := c.Args.End(); err != nil {
		return object.HashView{}, err
	}
	return c.Tx.Hash(k)
}

func hget(c *command.Call) error {
	value, found, err := oneField(c)
	return c.ReplyOrNull(value, found, err)
}

// oneField takes the arguments of commands that read one field, and returns its value.
func oneField(c *command.Call) (value []byte, found bool, err error) {
	k, field := c.Args.Key(), c.Args.Next()
	h, err := open(c, k)
	text, found := h.Get(field)
	return object.BytesOf(text), found, err
}

func hexists(c *command.Call) error {
	_, found, err := oneField(c)
	return c.ReplyFlag(found, err)
}

func hstrlen(c *command.Call) error {
	value, _, err := oneField(c)
	return c.ReplyCount(len(value), err)
}

func hmget(c *command.Call) error {
	k, fields := c.Args.Key(), c.Args.Rest()
	h, err := open(c, k)
	if err != nil {
		return err
	}

	c.Reply.Array(len(fields))
	for _, field := range fields {
		value, found := h.Get(field)
		c.Reply.BulkOrNull(object.BytesOf(value), found)
	}
	return nil
}

func hgetall(c *command.Call) error {
	return fields(c, (*wire.Reply).Mapping, func(field, value string) {
		c.Reply.BulkString(field)
		c.Reply.BulkString(value)
	})
}

func hkeys(c *command.Call) error {
	return fields(c, (*wire.Reply).Array, func(field, _ string) { c.Reply.BulkString(field) })
}

func hvals(c *command.Call) error {
	return fields(c, (*wire.Reply).Array, func(_, value string) { c.Reply.BulkString(value) })
}

// fields replies with all fields of a hash. A large hash is written after the locks are released.
func fields(c *command.Call, begin func(*wire.Reply, int), writeField func(field, value string)) error {
	h, err := open(c, c.Args.Key())
	if err != nil {
		return err
	}
	n, all := h.Len(), h.All()
	write := func(c *command.Call) error {
		begin(&c.Reply, n)
		for field, value := range all {
			writeField(field, value)
		}
		return nil
	}
	c.Visits(n)
	if n > command.LongReply {
		all = h.Keep()
		c.Postpone(write)
		return nil
	}
	return write(c)
}

func hdel(c *command.Call) error {
	k, fields := c.Args.Key(), c.Args.Rest()

	return c.ReplyCount(c.Tx.HDel(k, fields))
}

func hgetdel(c *command.Call) error {
	k := c.Args.Key()
	h, err := c.Tx.Hash(k)
	if err != nil {
		return err
	}
	if !c.Args.Word("FIELDS") {
		return errNoFields
	}
	if n := c.Args.IntegerFrom(1, errFieldCount); c.Args.Err == nil && n != int64(c.Args.Left()) {
		c.Args.Fail(errFieldsMismatch)
	}
	fields := c.Args.Rest()
	if err := c.Args.End(); err != nil {
		return err
	}

	c.Reply.Array(len(fields))
	for i, field := range fields {
		value, found := h.Get(field)
		c.Reply.BulkOrNull(object.BytesOf(value), found)
		if _, err := c.Tx.HDel(k, fields[i:i+1]); err != nil {
			return err
		}
		if h, err = c.Tx.Hash(k); err != nil {
			return err
		}
	}
	return nil
}

func hincrby(c *command.Call) error {
	k, field, by := c.Args.Key(), c.Args.Next(), c.Args.Integer()
	h, err := open(c, k)
	if err != nil {
		return err
	}
	var old int64
	if value, found := h.Get(field); found {
		if old, found = grammar.ParseInt([]byte(value)); !found {
			return engine.ErrHashNotInteger
		}
	}
	sum, ok := grammar.AddInt(old, by)
	if !ok {
		return engine.ErrOverflow
	}

	_, err = c.Tx.HSet(k, [][]byte{field, c.Digits(sum)})
	return c.ReplyInteger(sum, err)
}

func hincrbyfloat(c *command.Call) error {
	k, field := c.Args.Key(), c.Args.Next()
	by := c.Args.LongDoubleIn(c.Args.Next(), nil, engine.ErrNotFloat)
	if c.Args.Err == nil && by.IsInf() {
		c.Args.Fail(errNaNOrInf)
	}
	h, err := open(c, k)
	if err != nil {
		return err
	}
	sum := by
	if value, found := h.Get(field); found {
		old, ok := grammar.ParseLongDouble([]byte(value))
		if !ok {
			return engine.ErrHashNotFloat
		}
		if sum, ok = grammar.AddLongDouble(old, by); !ok {
			return engine.ErrNaNOrInfinity
		}
	}
	text := grammar.AppendLongDouble(nil, sum)
	if _, err := c.Tx.HSet(k, [][]byte{field, text}); err != nil {
		return err
	}

	c.Reply.Bulk(text)
	return nil
}

func hscan(c *command.Call) error {
	all := func(k engine.Key) (int, command.Scan, error) {
		h, err := c.Tx.Hash(k)
		return h.Len(), func(cursor uint64, n int, visit func(command.Element)) (uint64, error) {
			next := h.Scan(cursor, n, func(field, value string) { visit(command.Element{Name: field, Value: value}) })
			return next, nil
		}, err
	}
	return c.ScanElements(true, all, func(r *wire.Reply, e command.Element) { r.BulkString(e.Value) })
}

func hrandfield(c *command.Call) error {
	k := c.Args.Key()
	if !c.Args.More() {
		h, err := c.Tx.Hash(k)
		field, _, found := h.Random(c.Random)
		return c.ReplyOrNull(object.BytesOf(field), found, err)
	}
	n, withValues := c.Args.Picks("WITHVALUES")
	h, err := open(c, k)
	if err != nil {
		return err
	}

	switch {
	case n >= 0:
		writeHashFields(&c.Reply, int(min(n, int64(h.Len()))), h.Sample(c.Random, n), withValues)
	case h.Len() == 0:
		c.Reply.Array(0)
	default:
		writeHashFields(&c.Reply, int(-n), h.Pick(c.Random, int(-n)), withValues)
	}
	return nil
}

// writeHashFields replies with n fields, and with their values if wanted: flat in RESP2, in pairs
// in RESP3.
func writeHashFields(r *wire.Reply, n int, fields iter.Seq2[string, string], withValues bool) {
	if withValues && !r.RESP3 {
		r.Array(2 * n)
	} else {
		r.Array(n)
	}
	for field, value := range fields {
		if withValues && r.RESP3 {
			r.Array(2)
		}
		r.BulkString(field)
		if withValues {
			r.BulkString(value)
		}
	}
}
