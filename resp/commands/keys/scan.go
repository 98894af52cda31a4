package keys

import (
	"rlserver/engine/object"
	"rlserver/resp/command"
	"rlserver/resp/glob"
)

func init() {
	command.Register("generic",
		&command.Command{Name: "keys", Arity: 2, Flags: command.Readonly | command.Stepwise, Categories: "dangerous",
			Tips: "request_policy:all_shards nondeterministic_output_order", Merge: command.MergeArrays, Run: keys},
		&command.Command{Name: "scan", Arity: -2, Flags: command.Readonly | command.Stepwise,
			Merge: command.MergeScan, Run: scan},
	)
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
