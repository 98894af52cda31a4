package limits

import (
	"bytes"

	"rlserver/engine"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
	"rlserver/resp/command"
)

// The bans of policies: who is banned, and how a ban is lifted.
func init() {
	command.Register("ratelimit",
		&command.Command{Name: "rl.banned", Arity: -1, Since: "1.0.0",
			Flags: command.Readonly | command.Admin | command.Stepwise, Merge: mergeCursor(1),
			Complexity: "O(1) for every call, O(N) for a complete iteration, with N all keys",
			Syntax:     "[CURSOR cursor] [COUNT count] [MATCH pattern]",
			Summary: "Iterate over the ids that policies have banned, and the keys that calls with BAN have, as " +
				"SCAN does over keys, but only those whose keys the user may read: id, policy (empty for a " +
				"key), the ms until the ban ends, and how many bans there were in a row. The reply begins with " +
				"the next cursor, 0 at the end.", Run: listBanned},
		&command.Command{Name: "rl.unban", Arity: -2, Flags: command.Write | command.Fast,
			Keys: command.OneKey("RW update"), HashKeys: unbanKeys, Since: "1.0.0",
			Syntax:     "id [policy [policy ...]]",
			Complexity: "O(1) for each policy; without policies, for all of them", CountsOnce: command.Always,
			Summary: "Lifts the bans of an id and forgets its denials; what it has used stays used. Without " +
				"policies also those of a key of that name. Replies with the number of bans.", Run: unban},
	)
}

// unbanKeys hashes the keys of RL.UNBAN: those of usageKeys and, without policies, the key that has
// the id as its name. An address that a policy counts as a network has no such key: in a cluster it
// would be in another slot.
func unbanKeys(h *command.Hasher, words [][]byte) {
	id := words[1]
	if _, address := rule.Address(id); len(words) == 2 && !(address && h.Engine.CountsNetworks()) {
		h.AddName(id)
	}
	usageKeys(h, words)
}

// unban handles RL.UNBAN id [policy [policy ...]].
func unban(c *command.Call) error {
	id, keys, lifted := c.Args.List[0], c.Args.Keys, 0
	if len(c.Args.List) == 1 && len(keys) > 0 && bytes.Equal(keys[0].Name, id) {
		c.Args.Keys = keys[1:]
		if c.Tx.Unban(keys[0]) {
			lifted++
		}
		if !validCheckID(id) { // a key that is no id
			return c.ReplyCount(lifted, nil)
		}
	}
	names, err := policiesOf(c)
	if err != nil {
		return err
	}
	for i := range names {
		if c.Tx.Unban(c.Args.Keys[i]) {
			lifted++
		}
	}
	return c.ReplyCount(lifted, nil)
}

// listBanned handles RL.BANNED [CURSOR cursor] [COUNT count] [MATCH pattern].
func listBanned(c *command.Call) error {
	return walkIDs(c, func(key []byte) []byte {
		_, id := bannedOf(c.Env.Engine, key)
		return id
	}, writeBanned)
}

// bannedOf returns the id that a key is for, and the policy that bans it: for any other key nil and
// the key itself.
func bannedOf(e *engine.Engine, key []byte) (name, id []byte) {
	if name, id, ok := policy.SplitKey(key); ok && validCheckID(id) {
		if p := e.Policy(string(name)); p != nil && p.Ban() != nil {
			return name, id
		}
	}
	return nil, key
}

// writeBanned writes the id of a key if it is banned.
func writeBanned(c *command.Call, k engine.Key) (written bool, err error) {
	left, bans := c.Tx.Ban(k)
	if left == 0 {
		return false, nil
	}
	name, id := bannedOf(c.Env.Engine, k.Name)
	c.Reply.Mapping(4)
	c.Reply.BulkString("id")
	c.Reply.Bulk(id)
	c.Reply.BulkString("policy")
	c.Reply.Bulk(name)
	writeNumber(c, "ban", left)
	writeNumber(c, "bans", bans)
	return true, nil
}
