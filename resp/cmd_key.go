package resp

import (
	"math"

	"rlserver/engine"
)

func init() {
	const (
		toAll = "request_policy:multi_shard response_policy:agg_sum"
		onAll = "request_policy:all_shards response_policy:all_succeeded"
	)
	register(
		&command{name: "del", arity: -2, flags: write, keys: []keySpec{keysToEnd("RM delete", 1, 1)}, tips: toAll,
			syntax: "key [key ...]", group: "generic", since: "1.0.0",
			complexity: "O(N) where N is the number of keys that will be removed. When a key to remove holds a value other than a string, the individual complexity for this key is O(M) where M is the number of elements in the list, set, sorted set or hash. Removing a single key that holds a string value is O(1).",
			summary:    "Delete a key",
			run:        countKeys((*engine.Tx).Delete)},
		&command{name: "unlink", arity: -2, flags: write | fast, keys: []keySpec{keysToEnd("RM delete", 1, 1)}, tips: toAll,
			syntax: "key [key ...]", group: "generic", since: "4.0.0",
			complexity: "O(1) for each key removed regardless of its size. Then the command does O(N) work in a different thread in order to reclaim memory, where N is the number of allocations the deleted objects where composed of.",
			summary:    "Delete a key asynchronously in another thread. Otherwise it is just as DEL, but non blocking.",
			run:        countKeys((*engine.Tx).Delete)},
		&command{name: "exists", arity: -2, flags: readonly | fast, keys: []keySpec{keysToEnd("RO", 1, 1)}, tips: toAll,
			syntax: "key [key ...]", group: "generic", since: "1.0.0",
			complexity: "O(N) where N is the number of keys to check.",
			summary:    "Determine if a key exists",
			run:        countKeys((*engine.Tx).Exists)},
		&command{name: "touch", arity: -2, flags: readonly | fast, keys: []keySpec{keysToEnd("RO", 1, 1)}, tips: toAll,
			syntax: "key [key ...]", group: "generic", since: "3.2.1",
			complexity: "O(N) where N is the number of keys that will be touched.",
			summary:    "Alters the last access time of a key(s). Returns the number of existing keys specified.",
			run:        countKeys((*engine.Tx).Touch)},
		&command{name: "type", arity: 2, flags: readonly | fast, keys: []keySpec{key("RO", 1)},
			syntax: "key", group: "generic", since: "1.0.0", complexity: "O(1)",
			summary: "Determine the type stored at key",
			run:     typeOf},
		&command{name: "rename", arity: 3, flags: write, keys: []keySpec{key("RW access delete", 1), key("OW update", 2)},
			syntax: "key newkey", group: "generic", since: "1.0.0", complexity: "O(1)",
			summary: "Rename a key",
			run:     rename},
		&command{name: "renamenx", arity: 3, flags: write | fast, keys: []keySpec{key("RW access delete", 1), key("OW insert", 2)},
			syntax: "key newkey", group: "generic", since: "1.0.0", complexity: "O(1)",
			summary: "Rename a key, only if the new key does not exist",
			run:     renameNX},
		&command{name: "copy", arity: -3, flags: write | denyOOM, keys: []keySpec{key("RO access", 1), key("OW update", 2)},
			syntax: "source destination [DB destination-db] [REPLACE]", group: "generic", since: "6.2.0",
			complexity: "O(N) worst case for collections, where N is the number of nested items. O(1) for string values.",
			summary:    "Copy a key",
			prepare:    func(c *call, words [][]byte) { c.makeRoomFor(c.usage(words[1])) },
			run:        copyKey},
		&command{name: "move", arity: 3, flags: write | fast, keys: []keySpec{key("RW access update", 1)},
			syntax: "key db", group: "generic", since: "1.0.0", complexity: "O(1)",
			summary: "Move a key to another database",
			run:     move},
		&command{name: "randomkey", arity: 1, flags: readonly | wholeKeyspace, tips: "request_policy:all_shards nondeterministic_output",
			group: "generic", since: "1.0.0", complexity: "O(1)",
			summary: "Return a random key from the keyspace",
			run:     randomKey},
		&command{name: "dbsize", arity: 1, flags: readonly | fast | stepwise, categories: "keyspace",
			tips:  "request_policy:all_shards response_policy:agg_sum",
			group: "server", since: "1.0.0", complexity: "O(1)",
			summary: "Return the number of keys in the selected database",
			run:     dbSize},
		&command{name: "flushdb", arity: -1, flags: write | wholeKeyspace, categories: "keyspace dangerous", tips: onAll,
			syntax: "[ASYNC | SYNC]", group: "server", since: "1.0.0",
			complexity: "O(N) where N is the number of keys in the selected database",
			summary:    "Remove all keys from the current database",
			run:        flush((*engine.Tx).Flush)},
		&command{name: "flushall", arity: -1, flags: write | wholeKeyspace, categories: "keyspace dangerous", tips: onAll,
			syntax: "[ASYNC | SYNC]", group: "server", since: "1.0.0",
			complexity: "O(N) where N is the total number of keys in all databases",
			summary:    "Remove all keys from all databases",
			run:        flush((*engine.Tx).FlushAll)},
		&command{name: "swapdb", arity: 3, flags: write | fast | wholeKeyspace, categories: "keyspace dangerous",
			syntax: "index1 index2", group: "server", since: "4.0.0",
			complexity: "O(N) where N is the count of clients watching or blocking on keys from both databases.",
			summary:    "Swaps two Redis databases",
			run:        swapDB},
	)
}

const (
	errNotInt32   = engine.Error("ERR value is out of range, value must between -2147483648 and 2147483647")
	errNoFirstDB  = engine.Error("ERR invalid first DB index")
	errNoSecondDB = engine.Error("ERR invalid second DB index")
)

// countKeys handles commands that do something to every key and answer of how many it is true: DEL, UNLINK, EXISTS, TOUCH.
func countKeys(do func(*engine.Tx, engine.Key) bool) func(*call) error {
	return func(c *call) error {
		n := 0
		for c.args.more() {
			if do(c.tx, c.args.key()) {
				n++
			}
		}
		c.reply.count(n)
		return nil
	}
}

// typeOf handles TYPE key.
func typeOf(c *call) error {
	c.reply.status(c.tx.Type(c.args.key()).String())
	return nil
}

// rename handles RENAME key newkey.
func rename(c *call) error {
	from, to := c.args.key(), c.args.key()

	if err := c.tx.Rename(from, to); err != nil {
		return err
	}

	c.reply.ok()
	return nil
}

// renameNX handles RENAMENX key newkey.
func renameNX(c *call) error {
	from, to := c.args.key(), c.args.key()

	done, err := c.tx.RenameNX(from, to)
	if err != nil {
		return err
	}

	c.reply.flag(done)
	return nil
}

// copyKey handles COPY source destination [DB destination-db] [REPLACE].
func copyKey(c *call) error {
	from, to := c.args.key(), c.args.key()
	db, replace := c.db, false
	for c.args.more() {
		switch {
		case c.args.word("REPLACE"):
			replace = true
		case c.args.word("DB"):
			db = c.database()
		default:
			c.args.fail(engine.ErrSyntax)
		}
	}
	if err := c.args.end(); err != nil {
		return err
	}

	done, err := c.tx.Copy(from, to, db, replace)
	if err != nil {
		return err
	}

	c.reply.flag(done)
	return nil
}

// move handles MOVE key db.
func move(c *call) error {
	k, db := c.args.key(), c.database()
	if err := c.args.end(); err != nil {
		return err
	}

	done, err := c.tx.Move(k, db)
	if err != nil {
		return err
	}

	c.reply.flag(done)
	return nil
}

// randomKey handles RANDOMKEY.
func randomKey(c *call) error {
	name, ok := c.tx.RandomKey(c.random)
	if !ok {
		c.reply.null()
		return nil
	}
	c.reply.bulk(name)
	return nil
}

// dbSize handles DBSIZE. Outside of a transaction it takes no lock.
func dbSize(c *call) error {
	n, _ := c.tx.Count(c.db)
	c.tx.SeeAll()

	c.reply.count(n)
	return nil
}

// flush handles FLUSHDB and FLUSHALL [ASYNC | SYNC]. Both words mean the same here: the keys are gone at once, and the collector of
// garbage takes their memory back in its own time.
func flush(do func(*engine.Tx)) func(*call) error {
	return func(c *call) error {
		if !c.args.word("ASYNC") {
			c.args.word("SYNC")
		}
		if err := c.args.end(); err != nil {
			return err
		}

		do(c.tx)

		c.reply.ok()
		return nil
	}
}

// swapDB handles SWAPDB index1 index2.
func swapDB(c *call) error {
	a := c.args.int32Or(errNoFirstDB, errNoFirstDB)
	b := c.args.int32Or(errNoSecondDB, errNoSecondDB)
	if err := c.args.end(); err != nil {
		return err
	}
	if !c.env.hasDatabase(a) || !c.env.hasDatabase(b) {
		return errNoSuchDB
	}

	c.tx.Swap(int(a), int(b))

	c.reply.ok()
	return nil
}

// database takes the index of a database there is.
func (c *call) database() int {
	n := c.args.int32Or(engine.ErrNotInteger, errNotInt32)
	if !c.env.hasDatabase(n) {
		c.args.fail(errNoSuchDB)
	}
	return int(n)
}

// int32Or takes an integer; one that is none, or needs more than 32 bits, is answered with the command's own errors.
func (a *args) int32Or(malformed, outOfRange engine.Error) int64 {
	n := a.integerOr(malformed)
	if n < math.MinInt32 || n > math.MaxInt32 {
		a.fail(outOfRange)
	}
	return n
}
