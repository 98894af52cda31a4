package resp

import (
	"rlserver/engine"
)

func init() {
	register(
		&command{name: "keys", arity: 2, flags: readonly | stepwise, categories: "dangerous",
			tips:   "request_policy:all_shards nondeterministic_output_order",
			syntax: "pattern", group: "generic", since: "1.0.0",
			complexity: "O(N) with N being the number of keys in the database, under the assumption that the key names in the database and the given pattern have limited length.",
			summary:    "Find all keys matching the given pattern",
			run:        keys},
		&command{name: "scan", arity: -2, flags: readonly | stepwise, tips: "nondeterministic_output request_policy:special",
			syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]", group: "generic", since: "2.8.0",
			complexity: "O(1) for every call. O(N) for a complete iteration, including enough command calls for the cursor to return back to 0. N is the number of elements inside the collection.",
			summary:    "Incrementally iterate the keys space",
			run:        scan},
	)
}

// keysStep is how many keys KEYS looks at before it looks whether the reply is still wanted.
const keysStep = 1024

// keys handles KEYS pattern. Like SCAN it holds one shard after the other: a key that is there throughout is told once, others may be.
func keys(c *call) error {
	filter := scanOptions{pattern: newGlob(c.args.next(), false)}
	if err := c.args.end(); err != nil {
		return err
	}

	mark, n := c.reply.later(), 0
	next := uint64(0)
	for more := true; more; more = next != 0 {
		next = c.tx.Scan(c.env.clock(), c.db, next, keysStep, func(name []byte, _ engine.Type) {
			if filter.match(name) {
				c.reply.bulk(name)
				n++
			}
		})
		if err := filter.err(c); err != nil {
			return err
		}
	}
	c.reply.close(mark, n)
	return nil
}

// scan handles SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]. It holds no lock: the Tx takes one shard after the other.
func scan(c *call) error {
	cursor := c.args.cursor()
	options := c.args.scanOptions("TYPE", false)
	if err := c.args.end(); err != nil {
		return err
	}

	mark, n := c.reply.later(), 0
	for left := options.count; ; {
		step := min(left, keysStep)
		cursor = c.tx.Scan(c.env.clock(), c.db, cursor, step, func(name []byte, t engine.Type) {
			if options.match(name) && options.is(t) {
				c.reply.bulk(name)
				n++
			}
		})
		if err := options.err(c); err != nil {
			return err
		}
		if left -= step; cursor == 0 || left == 0 {
			break
		}
	}
	c.reply.closeScan(mark, cursor, n)
	return nil
}
