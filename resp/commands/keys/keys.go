package keys

import (
	"math"

	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/resp/command"
	"rlserver/resp/glob"
)

func init() {
	inspect := func(name string, run func(*command.Call) error) *command.Command {
		return &command.Command{Name: name, Arity: 3, Flags: command.Readonly,
			Keys: []command.KeySpec{command.Key("RO", 2)}, Run: run}
	}
	// Setting and reading the expiry have four forms each: in seconds or ms, relative or absolute.
	setter := func(name string, unit int64, absolute bool) *command.Command {
		return command.OnKey(name, -3, command.Write|command.Fast, "RW update",
			func(c *command.Call) error { return expire(c, unit, absolute) })
	}
	getter := func(name string, unit int64, absolute bool) *command.Command {
		return command.OnKey(name, 2, command.Readonly|command.Fast, "RO access",
			func(c *command.Call) error { return ttl(c, unit, absolute) })
	}
	command.Register("generic",
		setter("expire", 1000, false), setter("pexpire", 1, false),
		setter("expireat", 1000, true), setter("pexpireat", 1, true),
		getter("ttl", 1000, false), getter("pttl", 1, false),
		getter("expiretime", 1000, true), getter("pexpiretime", 1, true),
		command.OnKey("persist", 2, command.Write|command.Fast, "RW update", countKeys((*engine.Tx).Persist)),
		&command.Command{Name: "object", Arity: -2, Subs: []*command.Command{
			inspect("encoding", objectEncoding),
			inspect("freq", number((*engine.Tx).Frequency, func(c *command.Call) error {
				if !c.Env.Settings.Policy().CountsAccesses() {
					return errNoLFU
				}
				return nil
			})),
			command.HelpSince("6.2.0"),
			inspect("idletime", number((*engine.Tx).Idle, func(c *command.Call) error {
				if c.Env.Settings.Policy().CountsAccesses() {
					return errNoLRU
				}
				return nil
			})),
			inspect("refcount", number((*engine.Tx).References, nil)),
		}},
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
		&command.Command{Name: "keys", Arity: 2, Flags: command.Readonly | command.Stepwise, Categories: "dangerous",
			Tips: "request_policy:all_shards nondeterministic_output_order", Merge: command.MergeArrays, Run: keys},
		&command.Command{Name: "scan", Arity: -2, Flags: command.Readonly | command.Stepwise,
			Merge: command.MergeScan, Run: scan},
	)
}

const (
	errSwap        = engine.Error("ERR SWAPDB is not allowed in cluster mode")
	errMove        = engine.Error("ERR MOVE is not allowed in cluster mode")
	errCopyDB      = engine.Error("ERR Copying to another database is not allowed in cluster mode")
	errNoFirstDB   = engine.Error("ERR invalid first DB index")
	errNoSecondDB  = engine.Error("ERR invalid second DB index")
	errNXAndOthers = engine.Error("ERR NX and XX, GT or LT options at the same time are not compatible")
	errGTAndLT     = engine.Error("ERR GT and LT options at the same time are not compatible")
)

// countKeys handles commands that reply with how many of their keys they have done something to.
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

const (
	errNoLFU = engine.Error(
		"ERR An LFU maxmemory policy is not selected, access frequency not tracked. " + policySwitch,
	)
	errNoLRU = engine.Error("ERR An LFU maxmemory policy is selected, idle time not tracked. " + policySwitch)

	policySwitch = "Please note that when switching between policies at runtime LRU and LFU data will take some " +
		"time to adjust."
)

func objectEncoding(c *command.Call) error {
	encoding, ok := c.Tx.Encoding(c.Args.Key(), c.Env.Settings.Packing())
	return c.ReplyOrNull(object.BytesOf(encoding), ok, nil)
}

// number returns the handler of OBJECT FREQ, IDLETIME or REFCOUNT key. refused returns the error of
// keys that exist; nil: there is none.
func number(
	of func(*engine.Tx, engine.Key) (int64, bool), refused func(*command.Call) error,
) func(*command.Call) error {
	return func(c *command.Call) error {
		n, ok := of(c.Tx, c.Args.Key())
		switch {
		case !ok:
			c.Reply.Null()
			return nil
		case refused != nil:
			if err := refused(c); err != nil {
				return err
			}
		}
		return c.ReplyInteger(n, nil)
	}
}

// keysStep is the number of keys that KEYS visits between two checks whether the client is still
// connected.
const keysStep = 1024

// keys handles KEYS pattern. Like SCAN, it locks one shard at a time: a key that exists throughout
// is returned once; other keys may be returned.
func keys(c *command.Call) error {
	filter := command.ScanOptions{Pattern: glob.New(c.Args.Next(), false)}
	if err := c.Args.End(); err != nil {
		return err
	}

	mark, n := c.Reply.BeginArray(), 0
	next := uint64(0)
	for more, ok := true, false; more; more = next != 0 {
		c.Tx.DryRun(func() { // KEYS leaves expired keys, as in Redis
			next, ok = c.Tx.Scan(c.Env.Clock(), c.DB, next, keysStep, func(name []byte, _ object.Type) {
				if filter.Match(name) {
					c.Reply.Bulk(name)
					n++
				}
			})
		})
		if !ok {
			return command.ErrBusy
		}
		if err := filter.Err(c); err != nil {
			return err
		}
	}
	c.Reply.EndArray(mark, n)
	return nil
}

// scan handles SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]. The Tx locks one shard at a
// time.
func scan(c *command.Call) error {
	cursor := c.Args.Cursor()
	options := c.Args.ScanOptions("TYPE", false)
	if err := c.Args.End(); err != nil {
		return err
	}

	mark, n := c.Reply.BeginArray(), 0
	for left := options.Count; ; {
		step, ok := min(left, keysStep), false
		cursor, ok = c.Tx.Scan(c.Env.Clock(), c.DB, cursor, step, func(name []byte, t object.Type) {
			if options.Match(name) && options.Is(t) {
				c.Reply.Bulk(name)
				n++
			}
		})
		if !ok {
			return command.ErrBusy
		}
		if err := options.Err(c); err != nil {
			return err
		}
		if left -= step; cursor == 0 || left == 0 {
			break
		}
	}
	command.WriteScanHeader(&c.Reply, mark, cursor, n)
	return nil
}

// expire handles EXPIRE, PEXPIRE, EXPIREAT and PEXPIREAT key time [NX | XX | GT | LT]; unit is in
// ms. The options are checked before the time, and the time before the key.
func expire(c *command.Call, unit int64, absolute bool) error {
	k, amount := c.Args.Key(), c.Args.Next()
	conditions := parseExpireConditions(&c.Args)
	at := c.Deadline(amount, math.MinInt64, unit, absolute)
	if err := c.Args.End(); err != nil {
		return err
	}

	return c.ReplyFlag(c.Tx.Expire(k, at, conditions), nil)
}

// parseExpireConditions parses all remaining arguments, as options.
func parseExpireConditions(a *command.Args) (all engine.ExpireIf) {
	for a.More() {
		switch {
		case a.Word("NX"):
			all |= engine.ExpireNX
		case a.Word("XX"):
			all |= engine.ExpireXX
		case a.Word("GT"):
			all |= engine.ExpireGT
		case a.Word("LT"):
			all |= engine.ExpireLT
		default:
			a.Fail(engine.Errorf("ERR Unsupported option %.128s", a.Next()))
		}
	}
	if all&engine.ExpireNX != 0 && all != engine.ExpireNX {
		a.Fail(errNXAndOthers)
	}
	if all&engine.ExpireGT != 0 && all&engine.ExpireLT != 0 {
		a.Fail(errGTAndLT)
	}
	return all
}

// ttl handles TTL, PTTL, EXPIRETIME and PEXPIRETIME key. Times are rounded to the nearest unit, in
// ms.
func ttl(c *command.Call, unit int64, absolute bool) error {
	at, ok := c.Tx.Deadline(c.Args.Key())
	switch {
	case !ok:
		return c.ReplyInteger(-2, nil)
	case at == 0:
		return c.ReplyInteger(-1, nil)
	case !absolute:
		at -= c.Tx.Now()
	}
	return c.ReplyInteger(at/unit+(at%unit+unit/2)/unit, nil)
}
