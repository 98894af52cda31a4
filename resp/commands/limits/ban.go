package limits

import (
	"rlserver/engine"
	"rlserver/engine/policy"
	"rlserver/resp/command"
)

// The bans of policies: who is banned, and how a ban is lifted.
func init() {
	command.Register("ratelimit",
		&command.Command{Name: "rl.banned", Arity: -1, Since: "1.0.0",
			Flags: command.Readonly | command.Admin | command.Stepwise, Merge: mergeBanned,
			Complexity: "O(1) for every call, O(N) for a complete iteration, with N all keys",
			Syntax:     "[CURSOR cursor] [COUNT count] [MATCH pattern]",
			Summary: "Iterate over the ids that policies have banned, as SCAN does over keys, but only those " +
				"whose keys the user may read: id, policy, the ms until the ban ends, and how many bans there were " +
				"in a row. The reply begins with the next cursor, 0 at the end.", Run: listBanned},
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

// listBanned handles RL.BANNED [CURSOR cursor] [COUNT count] [MATCH pattern].
func listBanned(c *command.Call) error {
	policies := c.Env.Engine
	return walkIDs(c, func(name, _ []byte) bool {
		p := policies.Policy(string(name))
		return p != nil && p.Ban() != nil
	}, writeBanned)
}

// writeBanned writes the id of a key if it is banned.
func writeBanned(c *command.Call, k engine.Key) (written bool, err error) {
	left, bans := c.Tx.Ban(k)
	if left == 0 {
		return false, nil
	}
	name, id, _ := policy.SplitKey(k.Name)
	c.Reply.Mapping(4)
	c.Reply.BulkString("id")
	c.Reply.Bulk(id)
	c.Reply.BulkString("policy")
	c.Reply.Bulk(name)
	writeNumber(c, "ban", left)
	writeNumber(c, "bans", bans)
	return true, nil
}

// mergeBanned is command.MergeScan with the cursor behind its keyword.
func mergeBanned(m *command.Merger) { mergeCursor(m, 1) }
