package keys

import (
	"rlserver/engine"
	"rlserver/resp/command"
)

func init() {
	command.Register("generic",
		&command.Command{Name: "del", Arity: -2, Flags: command.Write,
			Keys: []command.KeySpec{command.KeysToEnd("RM delete", 1, 1)}, Run: countKeys((*engine.Tx).Delete)},
		&command.Command{Name: "unlink", Arity: -2, Flags: command.Write | command.Fast,
			Keys: []command.KeySpec{command.KeysToEnd("RM delete", 1, 1)}, Run: countKeys((*engine.Tx).Delete)},
		&command.Command{Name: "exists", Arity: -2, Flags: command.Readonly | command.Fast,
			Keys: []command.KeySpec{command.KeysToEnd("RO", 1, 1)}, Run: countKeys((*engine.Tx).Exists)},
		&command.Command{Name: "touch", Arity: -2, Flags: command.Readonly | command.Fast,
			Keys: []command.KeySpec{command.KeysToEnd("RO", 1, 1)}, Run: countKeys((*engine.Tx).Touch)},
		command.OnKey("type", 2, command.Readonly|command.Fast, "RO", typeOf),
		&command.Command{Name: "rename", Arity: 3, Flags: command.Write,
			Keys: []command.KeySpec{command.Key("RW access delete", 1), command.Key("OW update", 2)}, Run: rename},
		&command.Command{Name: "renamenx", Arity: 3, Flags: command.Write | command.Fast,
			Keys: []command.KeySpec{command.Key("RW access delete", 1), command.Key("OW insert", 2)}, Run: renameNX},
		&command.Command{Name: "copy", Arity: -3, Flags: command.Write | command.DenyOOM,
			Keys:    []command.KeySpec{command.Key("RO access", 1), command.Key("OW update", 2)},
			Prepare: func(c *command.Call, words [][]byte) { c.EvictFor(c.Usage(words[1])) }, Run: copyKey},
		&command.Command{Name: "move", Arity: 3, Flags: command.Write | command.Fast,
			Keys: command.OneKey("RW access update"), Refused: command.NotInCluster(errMove), Run: move},
		&command.Command{Name: "randomkey", Arity: 1, Flags: command.Readonly | command.WholeKeyspace,
			Tips: "request_policy:all_shards nondeterministic_output", Merge: command.MergeDraw, Run: randomKey},
		&command.Command{Name: "dbsize", Arity: 1, Flags: command.Readonly | command.Fast | command.Stepwise,
			Categories: "keyspace", Group: "server", Merge: command.MergeSum, Run: dbSize},
		&command.Command{Name: "flushdb", Arity: -1, Flags: command.Write | command.WholeKeyspace,
			Categories: "keyspace dangerous", Group: "server", Merge: command.MergeFlush,
			Run: flush((*engine.Tx).Flush)},
		&command.Command{Name: "flushall", Arity: -1, Flags: command.Write | command.WholeKeyspace,
			Categories: "keyspace dangerous", Group: "server", Merge: command.MergeFlush,
			Run: flush((*engine.Tx).FlushAll)},
		&command.Command{Name: "swapdb", Arity: 3, Flags: command.Write | command.Fast | command.WholeKeyspace,
			Categories: "keyspace dangerous", Group: "server", Refused: command.NotInCluster(errSwap), Run: swapDB},
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
		return c.ReplyCount(n, nil)
	}
}

func typeOf(c *command.Call) error {
	c.Reply.Status(c.Tx.Type(c.Args.Key()).String())
	return nil
}

func rename(c *command.Call) error {
	from, to := c.Args.Key(), c.Args.Key()

	return c.ReplyOK(c.Tx.Rename(from, to))
}

func renameNX(c *command.Call) error {
	from, to := c.Args.Key(), c.Args.Key()

	return c.ReplyFlag(c.Tx.RenameNX(from, to))
}

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
	return c.ReplyFlag(c.Tx.Copy(from, to, db, replace))
}

func move(c *command.Call) error {
	k, db := c.Args.Key(), c.Database()
	if err := c.Args.End(); err != nil {
		return err
	}

	return c.ReplyFlag(c.Tx.Move(k, db))
}

func randomKey(c *command.Call) error {
	name, ok := c.Tx.RandomKey(c.Random)
	return c.ReplyOrNull(name, ok, nil)
}

// dbSize handles DBSIZE. Outside of a transaction it takes no lock, unless a script holds keys.
func dbSize(c *command.Call) error {
	n, ok := c.Tx.SizeUnlessHeld(c.Env.Clock(), c.DB)
	if !ok {
		return command.ErrBusy
	}
	c.Tx.SeeAll()

	return c.ReplyCount(n, nil)
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

		return c.ReplyOK(nil)
	}
}

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

	return c.ReplyOK(nil)
}
