package keys

import (
	"rlserver/engine"
	"rlserver/resp/command"
)

func init() {
	const (
		toAll = "request_policy:multi_shard response_policy:agg_sum"
		onAll = "request_policy:all_shards response_policy:all_succeeded"
	)
	command.Register("generic",
		&command.Command{Name: "del", Arity: -2, Flags: command.Write,
			Keys: []command.KeySpec{command.KeysToEnd("RM delete", 1, 1)}, Tips: toAll, Syntax: "key [key ...]",
			Since: "1.0.0",
			Complexity: "O(N) where N is the number of keys that will be removed. When a key to remove holds " +
				"a value other than a string, the individual complexity for this key is O(M) where M is the " +
				"number of elements in the list, set, sorted set or hash. Removing a single key that holds a " +
				"string value is O(1).", Summary: "Delete a key", Run: countKeys((*engine.Tx).Delete)},
		&command.Command{Name: "unlink", Arity: -2, Flags: command.Write | command.Fast,
			Keys: []command.KeySpec{command.KeysToEnd("RM delete", 1, 1)}, Tips: toAll, Syntax: "key [key ...]",
			Since: "4.0.0",
			Complexity: "O(1) for each key removed regardless of its size. Then the command does O(N) work in " +
				"a different thread in order to reclaim memory, where N is the number of allocations the deleted " +
				"objects where composed of.",
			Summary: "Delete a key asynchronously in another thread. Otherwise it is just as DEL, but non " +
				"blocking.", Run: countKeys((*engine.Tx).Delete)},
		&command.Command{Name: "exists", Arity: -2, Flags: command.Readonly | command.Fast,
			Keys: []command.KeySpec{command.KeysToEnd("RO", 1, 1)}, Tips: toAll, Syntax: "key [key ...]",
			Since: "1.0.0", Complexity: "O(N) where N is the number of keys to check.",
			Summary: "Determine if a key exists", Run: countKeys((*engine.Tx).Exists)},
		&command.Command{Name: "touch", Arity: -2, Flags: command.Readonly | command.Fast,
			Keys: []command.KeySpec{command.KeysToEnd("RO", 1, 1)}, Tips: toAll, Syntax: "key [key ...]",
			Since: "3.2.1", Complexity: "O(N) where N is the number of keys that will be touched.",
			Summary: "Alters the last access time of a key(s). Returns the number of existing keys specified.",
			Run:     countKeys((*engine.Tx).Touch)},
		&command.Command{Name: "type", Arity: 2, Flags: command.Readonly | command.Fast, Keys: command.OneKey("RO"),
			Syntax: "key", Since: "1.0.0", Complexity: "O(1)", Summary: "Determine the type stored at key",
			Run: typeOf},
		&command.Command{Name: "rename", Arity: 3, Flags: command.Write,
			Keys:   []command.KeySpec{command.Key("RW access delete", 1), command.Key("OW update", 2)},
			Syntax: "key newkey", Since: "1.0.0", Complexity: "O(1)", Summary: "Rename a key", Run: rename},
		&command.Command{Name: "renamenx", Arity: 3, Flags: command.Write | command.Fast,
			Keys:   []command.KeySpec{command.Key("RW access delete", 1), command.Key("OW insert", 2)},
			Syntax: "key newkey", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Rename a key, only if the new key does not exist", Run: renameNX},
		&command.Command{Name: "copy", Arity: -3, Flags: command.Write | command.DenyOOM,
			Keys:   []command.KeySpec{command.Key("RO access", 1), command.Key("OW update", 2)},
			Syntax: "source destination [DB destination-db] [REPLACE]", Since: "6.2.0",
			Complexity: "O(N) worst case for collections, where N is the number of nested items. O(1) for " +
				"string values.", Summary: "Copy a key",
			Prepare: func(c *command.Call, words [][]byte) { c.EvictFor(c.Usage(words[1])) }, Run: copyKey},
		&command.Command{Name: "move", Arity: 3, Flags: command.Write | command.Fast,
			Keys: command.OneKey("RW access update"), Syntax: "key db", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Move a key to another database", Refused: command.NotInCluster(errMove), Run: move},
		&command.Command{Name: "randomkey", Arity: 1, Flags: command.Readonly | command.WholeKeyspace,
			Tips: "request_policy:all_shards nondeterministic_output", Since: "1.0.0", Complexity: "O(1)",
			Summary: "Return a random key from the keyspace", Merge: command.MergeDraw, Run: randomKey},
		&command.Command{Name: "dbsize", Arity: 1, Flags: command.Readonly | command.Fast | command.Stepwise,
			Categories: "keyspace", Tips: "request_policy:all_shards response_policy:agg_sum", Group: "server",
			Since: "1.0.0", Complexity: "O(1)", Summary: "Return the number of keys in the selected database",
			Merge: command.MergeSum, Run: dbSize},
		&command.Command{Name: "flushdb", Arity: -1, Flags: command.Write | command.WholeKeyspace,
			Categories: "keyspace dangerous", Tips: onAll, Syntax: "[ASYNC | SYNC]", Group: "server", Since: "1.0.0",
			Complexity: "O(N) where N is the number of keys in the selected database",
			Summary:    "Remove all keys from the current database", Merge: command.MergeFlush,
			Run: flush((*engine.Tx).Flush)},
		&command.Command{Name: "flushall", Arity: -1, Flags: command.Write | command.WholeKeyspace,
			Categories: "keyspace dangerous", Tips: onAll, Syntax: "[ASYNC | SYNC]", Group: "server", Since: "1.0.0",
			Complexity: "O(N) where N is the total number of keys in all databases",
			Summary:    "Remove all keys from all databases", Merge: command.MergeFlush,
			Run: flush((*engine.Tx).FlushAll)},
		&command.Command{Name: "swapdb", Arity: 3, Flags: command.Write | command.Fast | command.WholeKeyspace,
			Categories: "keyspace dangerous", Syntax: "index1 index2", Group: "server", Since: "4.0.0",
			Complexity: "O(N) where N is the count of clients watching or blocking on keys from both databases.",
			Summary:    "Swaps two Redis databases", Refused: command.NotInCluster(errSwap), Run: swapDB},
	)
}

const (
	errSwap       = engine.Error("ERR SWAPDB is not allowed in cluster mode")
	errMove       = engine.Error("ERR MOVE is not allowed in cluster mode")
	errCopyDB     = engine.Error("ERR Copying to another database is not allowed in cluster mode")
	errNoFirstDB  = engine.Error("ERR invalid first DB index")
	errNoSecondDB = engine.Error("ERR invalid second DB index")
)

// countKeys handles commands that reply with how many of their keys exist: DEL, UNLINK, EXISTS,
// TOUCH.
func countKeys(do func(*engine.Tx, engine.Key) bool) func(*command.Call) error {
	return func(c *command.Call) error {
		n := 0
		for c.Args.More() {
			if do(c.Tx, c.Args.Key()) {
				n++
			}
		}
		c.Reply.Count(n)
		return nil
	}
}

// typeOf handles TYPE key.
func typeOf(c *command.Call) error {
	c.Reply.Status(c.Tx.Type(c.Args.Key()).String())
	return nil
}

// rename handles RENAME key newkey.
func rename(c *command.Call) error {
	from, to := c.Args.Key(), c.Args.Key()

	if err := c.Tx.Rename(from, to); err != nil {
		return err
	}

	c.Reply.OK()
	return nil
}

// renameNX handles RENAMENX key newkey.
func renameNX(c *command.Call) error {
	from, to := c.Args.Key(), c.Args.Key()

	done, err := c.Tx.RenameNX(from, to)
	if err != nil {
		return err
	}

	c.Reply.Flag(done)
	return nil
}

// copyKey handles COPY source destination [DB destination-db] [REPLACE].
func copyKey(c *command.Call) error {
	from, to := c.Args.Key(), c.Args.Key()
	db, replace := c.DB, false
	for c.Args.More() {
		switch {
		case c.Args.Word("REPLACE"):
			replace = true
		case c.Args.Word("DB"):
			db = c.Database()
		default:
			c.Args.Fail(engine.ErrSyntax)
		}
	}
	if err := c.Args.End(); err != nil {
		return err
	}

	if db >= c.Env.Engine.Databases() { // in a cluster, see Env.HasDatabase
		return errCopyDB
	}
	done, err := c.Tx.Copy(from, to, db, replace)
	if err != nil {
		return err
	}

	c.Reply.Flag(done)
	return nil
}

// move handles MOVE key db.
func move(c *command.Call) error {
	k, db := c.Args.Key(), c.Database()
	if err := c.Args.End(); err != nil {
		return err
	}

	done, err := c.Tx.Move(k, db)
	if err != nil {
		return err
	}

	c.Reply.Flag(done)
	return nil
}

// randomKey handles RANDOMKEY.
func randomKey(c *command.Call) error {
	name, ok := c.Tx.RandomKey(c.Random)
	if !ok {
		c.Reply.Null()
		return nil
	}
	c.Reply.Bulk(name)
	return nil
}

// dbSize handles DBSIZE. Outside of a transaction it takes no lock.
func dbSize(c *command.Call) error {
	n, _ := c.Tx.Count(c.DB)
	c.Tx.SeeAll()

	c.Reply.Count(n)
	return nil
}

// flush handles FLUSHDB and FLUSHALL [ASYNC | SYNC]. Both words mean the same: the keys are
// removed at once, and the garbage collector frees their memory later.
func flush(do func(*engine.Tx)) func(*command.Call) error {
	return func(c *command.Call) error {
		if !c.Args.Word("ASYNC") {
			c.Args.Word("SYNC")
		}
		if err := c.Args.End(); err != nil {
			return err
		}

		do(c.Tx)

		c.Reply.OK()
		return nil
	}
}

// swapDB handles SWAPDB index1 index2.
func swapDB(c *command.Call) error {
	a := c.Args.Int32Or(errNoFirstDB, errNoFirstDB)
	b := c.Args.Int32Or(errNoSecondDB, errNoSecondDB)
	if err := c.Args.End(); err != nil {
		return err
	}
	if !c.Env.HasDatabase(a) || !c.Env.HasDatabase(b) {
		return command.ErrNoSuchDB
	}

	c.Tx.Swap(int(a), int(b))

	c.Reply.OK()
	return nil
}
