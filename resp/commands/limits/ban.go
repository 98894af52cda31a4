package limits

import (
	"bytes"
	"slices"

	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
	"rlserver/resp/glob"
)

// The bans of policies: who is banned, and how a ban is lifted.
func init() {
	command.Register("ratelimit",
		&command.Command{Name: "rl.banned", Arity: -1, Since: "1.0.0",
			Flags: command.Readonly | command.Admin | command.Stepwise, Merge: mergeBanned,
			Complexity: "O(1) for every call, O(N) for a complete iteration, with N all keys",
			Syntax:     "[CURSOR cursor] [COUNT count] [MATCH pattern]",
			Summary: "Iterate over the ids that policies have banned, as SCAN does over keys: id, policy, the " +
				"ms until the ban ends, and how many bans there were in a row. The reply begins with the " +
				"next cursor, 0 at the end.", Run: listBanned},
		&command.Command{Name: "rl.unban", Arity: -2, Flags: command.Write | command.Fast,
			Keys: command.OneKey("RW update"), HashKeys: usageKeys, Since: "1.0.0",
			Syntax:     "id [policy [policy ...]]",
			Complexity: "O(1) for each policy; without policies, for all of them", CountsOnce: command.Always,
			Summary: "Lifts the bans of an id and forgets its denials; what it has used stays used. Replies with " +
				"the number of bans.", Run: unban},
	)
}

// unban handles RL.UNBAN id [policy [policy ...]].
func unban(c *command.Call) error {
	names, err := policiesOf(c)
	if err != nil {
		return err
	}
	lifted := 0
	for i := range names {
		if c.Tx.Unban(c.Args.Keys[i]) {
			lifted++
		}
	}
	return c.ReplyCount(lifted, nil)
}

// listBanned handles RL.BANNED [CURSOR cursor] [COUNT count] [MATCH pattern]. Like SCAN, it locks
// one shard at a time: a ban that lasts throughout is returned once or more.
func listBanned(c *command.Call) error {
	o, cursor, err := takeCursor(c)
	if err != nil {
		return err
	}
	mark, n := c.Reply.BeginArray(), 0
	for left := o.Count; ; {
		step := min(left, idsStep)
		next, written, err := writeBanned(c, &o, cursor, step)
		if err != nil {
			return err
		}
		cursor, n = next, n+written
		if left -= step; cursor == 0 || left == 0 {
			break
		}
	}
	command.WriteScanHeader(&c.Reply, mark, cursor, n)
	return nil
}

// takeCursor takes the options of an iteration over ids.
func takeCursor(c *command.Call) (o command.ScanOptions, cursor uint64, err error) {
	o = command.ScanOptions{Pattern: glob.New([]byte("*"), false), Count: command.DefaultScanCount}
	for c.Args.More() {
		switch {
		case c.Args.Word("CURSOR"):
			cursor = c.Args.Cursor()
		case c.Args.Word("MATCH"):
			o.Pattern.Text = c.Args.Next()
		case c.Args.Word("COUNT"):
			o.Count = int(parseAmount(&c.Args, "COUNT", 1))
		default:
			c.Args.Fail(engine.ErrSyntax)
		}
	}
	return o, cursor, c.Args.End()
}

// writeBanned visits some keys from a cursor on, and writes the ids among them that are banned.
func writeBanned(c *command.Call, o *command.ScanOptions, cursor uint64, count int) (
	next uint64, written int, err error,
) {
	var keys [][]byte
	next, ok := c.Tx.Scan(c.Env.Clock(), c.DB, cursor, count, func(key []byte, _ object.Type) {
		if _, id, ok := splitKey(key); ok && o.Match(id) {
			keys = append(keys, slices.Clone(key))
		}
	})
	if !ok {
		return 0, 0, command.ErrBusy
	}
	for _, key := range keys {
		name, id, _ := splitKey(key)
		if p := c.Env.Engine.Policy(string(name)); p == nil || p.Ban() == nil {
			continue
		}
		k := []engine.Key{c.Env.Engine.Key(key)}
		var left, bans int64
		if !c.Tx.Step(c.Env.Clock(), c.DB, k, func() { left, bans = c.Tx.Ban(k[0]) }) {
			return 0, 0, command.ErrBusy
		}
		if left == 0 {
			continue
		}
		c.Reply.Mapping(4)
		c.Reply.BulkString("id")
		c.Reply.Bulk(id)
		c.Reply.BulkString("policy")
		c.Reply.Bulk(name)
		writeNumber(c, "ban", left)
		writeNumber(c, "bans", bans)
		written++
	}
	return next, written, o.Err(c)
}

// splitKey returns the policy and the id of a key policy:{id}.
func splitKey(key []byte) (name, id []byte, ok bool) {
	name, id, _ = bytes.Cut(key, []byte(":{"))
	if id, ok = bytes.CutSuffix(id, []byte("}")); !ok {
		return nil, nil, false
	}
	return name, id, validCheckID(id)
}

// mergeBanned is command.MergeScan with the cursor behind its keyword.
func mergeBanned(m *command.Merger) { mergeCursor(m, 1) }

// mergeCursor is command.MergeScan with the cursor behind its keyword, among options from a word
// on.
func mergeCursor(m *command.Merger, options int) {
	for i := options; i+1 < len(m.Words); i += 2 {
		if grammar.EqualFold(m.Words[i], "CURSOR") {
			command.MergeScanAt(m, i+1)
			return
		}
	}
	m.Words = append(slices.Clone(m.Words), []byte("CURSOR"), []byte("0"))
	command.MergeScanAt(m, len(m.Words)-1)
}
