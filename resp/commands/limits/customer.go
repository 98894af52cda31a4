package limits

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/policy"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
	"rlserver/resp/glob"
)

// One customer at a glance: the commands that look at an id under several policies, or at the ids
// of one policy.
func init() {
	command.Register("ratelimit",
		&command.Command{Name: "rl.usage", Arity: -2, Flags: command.Readonly | command.Fast,
			Keys: command.OneKey("RO access"), HashKeys: usageKeys, Syntax: "id [policy [policy ...]]", Since: "1.0.0",
			Complexity: "that of a peek at each policy; without policies, at all of them",
			Summary: "What an id has used of policies, which changes nothing. held is how many hits are " +
				"reserved, ban the ms until a ban ends.", Run: usage},
		&command.Command{Name: "rl.reset", Arity: -2, Flags: command.Write | command.Fast,
			Keys: command.OneKey("RW delete"), HashKeys: usageKeys, Syntax: "id [policy [policy ...]]", Since: "1.0.0",
			Complexity: "that of DEL for each policy; without policies, for all of them", CountsOnce: command.Always,
			Summary: "Makes policies as if an id had never used them, by deleting the keys policy:{id}. " +
				"Replies with their number.", Run: reset},
	)
}

// policyIDs declares RL.POLICY IDS.
var policyIDs = &command.Command{Name: "ids", Arity: -3, Since: "1.0.0",
	Flags: command.Readonly | command.Admin | command.Stepwise, Merge: mergeCursor(3),
	Complexity: "O(1) for every call, O(N) for a complete iteration, with N all keys",
	Syntax:     "name [CURSOR cursor] [COUNT count] [MATCH pattern]",
	Summary: "Iterate over the ids of a policy with what each has used, as SCAN does over keys, but only " +
		"those whose keys the user may read: the reply begins with the next cursor, 0 at the end", Run: listIDs}

// usageKeys hashes the keys policy:{id} of the policies that are named; without names, of all.
func usageKeys(h *command.Hasher, words [][]byte) {
	id, names := words[1], words[2:]
	if !validCheckID(id) || len(names) > MaxPolicies {
		return
	}
	if len(names) == 0 {
		names = namesOfAll(h.Engine)
	}
	if len(names) == 0 { // in a cluster the call runs at the id all the same
		h.AddName(id)
		return
	}
	addPolicyKeys(h, id, names)
}

func namesOfAll(e *engine.Engine) (names [][]byte) {
	for _, p := range e.Policies() {
		names = append(names, []byte(p.Name()))
	}
	return names
}

const errPoliciesChanged = engine.Error("TRYAGAIN policies have just been changed: send the call again")

// policiesOf takes the id and the names of a call whose keys usageKeys has hashed, and returns the
// policies that it is about.
func policiesOf(c *command.Call) (names [][]byte, err error) {
	id := c.Args.Next()
	if !validCheckID(id) {
		return nil, errCheckID
	}
	if names = c.Args.Rest(); len(names) > MaxPolicies {
		return nil, engine.Error(fmt.Sprintf("ERR too many policies: %s takes at most %d, or all without a name",
			strings.ToUpper(c.Command.Name), MaxPolicies))
	}
	if len(names) == 0 {
		if names = namesOfAll(c.Env.Engine); len(names) == 0 {
			return nil, nil
		}
	}
	if len(names) != len(c.Args.Keys) {
		return nil, errPoliciesChanged
	}
	for i, name := range names {
		if of, _, _ := policy.SplitKey(c.Args.Keys[i].Name); !bytes.Equal(of, name) {
			return nil, errPoliciesChanged
		}
		if c.Env.Engine.Policy(string(name)) == nil {
			return nil, policy.NoSuchPolicy(name)
		}
	}
	return names, c.Tx.KeysHold(names, c.Args.Keys, id)
}

// usage handles RL.USAGE id [policy [policy ...]].
func usage(c *command.Call) error {
	names, err := policiesOf(c)
	if err != nil {
		return err
	}
	found := make([]limit.Decision, len(names))
	for i, name := range names {
		if found[i], err = lookAt(c, name, c.Args.Keys[i]); err != nil {
			return err
		}
	}

	c.Reply.Array(len(names))
	for i, d := range found {
		c.Reply.Mapping(8)
		c.Reply.BulkString("name")
		c.Reply.Bulk(names[i])
		c.Reply.BulkString("allowed")
		c.Reply.Flag(d.Allowed)
		writeNumber(c, "limit", d.Limit)
		writeNumber(c, "remaining", d.Remaining)
		writeNumber(c, "retry_after", d.RetryAfter)
		writeNumber(c, "reset_after", d.ResetAfter)
		writeNumber(c, "held", c.Tx.Held(c.Args.Keys[i]))
		left, _ := c.Tx.Ban(c.Args.Keys[i])
		writeNumber(c, "ban", left)
	}
	return nil
}

func writeNumber(c *command.Call, name string, n int64) {
	c.Reply.BulkString(name)
	c.Reply.Integer(n)
}

// lookAt returns the answer of a policy to a peek, which is counted nowhere.
func lookAt(c *command.Call, name []byte, k engine.Key) (d limit.Decision, err error) {
	p := c.Env.Engine.Policy(string(name))
	if p == nil {
		return d, errPoliciesChanged
	}
	call := engine.CheckCall{Names: [][]byte{name}, Keys: []engine.Key{k}, Costs: []int64{0}}
	if p.Rule().Kind.Algorithm().HasID {
		call.ID = []byte{} // another lease than those that are held
	}
	c.Tx.NoTouch(true, func() {
		c.Tx.DryRun(func() { d, err = c.Tx.Check(call) })
	})
	return d, err
}

// reset handles RL.RESET id [policy [policy ...]].
func reset(c *command.Call) error {
	names, err := policiesOf(c)
	if err != nil {
		return err
	}
	deleted := 0
	for i := range names {
		if c.Tx.Delete(c.Args.Keys[i]) {
			deleted++
		}
	}
	return c.ReplyCount(deleted, nil)
}

// listIDs handles RL.POLICY IDS name [CURSOR cursor] [COUNT count] [MATCH pattern].
func listIDs(c *command.Call) error {
	wanted := c.Args.Next()
	if c.Env.Engine.Policy(string(wanted)) == nil {
		return policy.NoSuchPolicy(wanted)
	}
	return walkIDs(c, func(key []byte) []byte {
		name, id, ok := policy.SplitKey(key)
		if !ok || !validCheckID(id) || !bytes.Equal(name, wanted) {
			return nil
		}
		return id
	}, writeUse)
}

// writeUse writes the id of a key with what it has used, unless the policy cannot use the key.
func writeUse(c *command.Call, k engine.Key) (written bool, err error) {
	if !c.Tx.Exists(k) {
		return false, nil
	}
	name, id, _ := policy.SplitKey(k.Name)
	d, err := lookAt(c, name, k)
	switch err {
	case nil:
	case errPoliciesChanged, engine.ErrOldPolicies:
		return false, err
	default: // it is no limiter's, or counts in another window
		return false, nil
	}
	c.Reply.Mapping(4)
	c.Reply.BulkString("id")
	c.Reply.Bulk(id)
	writeNumber(c, "used", d.Limit-d.Remaining)
	writeNumber(c, "limit", d.Limit)
	writeNumber(c, "held", c.Tx.Held(k))
	return true, nil
}

// walkIDs handles [CURSOR cursor] [COUNT count] [MATCH pattern]: it calls write for the keys that
// the user may read and whose id, as idOf returns it, matches; nil: none. Like SCAN, it locks one
// shard at a time: what is there throughout is written once or more.
func walkIDs(
	c *command.Call, idOf func(key []byte) []byte, write func(*command.Call, engine.Key) (bool, error),
) error {
	o, cursor, err := takeCursor(c, true)
	if err != nil {
		return err
	}
	mark, n, mayRead := c.Reply.BeginArray(), 0, c.MayReadKey()
	for left := o.Count; ; {
		step := min(left, idsStep)
		var keys []engine.Key
		next, ok := c.Tx.Scan(c.Env.Clock(), c.DB, cursor, step, func(key []byte, _ object.Type) {
			if id := idOf(key); id != nil && o.Match(id) {
				keys = append(keys, c.Env.Engine.Key(slices.Clone(key)))
			}
		})
		for i := 0; ok && err == nil && i < len(keys); i++ {
			if !mayRead(keys[i].Name) {
				continue
			}
			ok = c.Tx.Step(c.Env.Clock(), c.DB, keys[i:i+1], func() {
				var written bool
				if written, err = write(c, keys[i]); written {
					n++
				}
			})
		}
		switch {
		case err != nil:
			return err
		case !ok:
			return command.ErrBusy
		}
		if err := o.Err(c); err != nil {
			return err
		}
		cursor = next
		if left -= step; cursor == 0 || left == 0 {
			break
		}
	}
	command.WriteScanHeader(&c.Reply, mark, cursor, n)
	return nil
}

// idsStep is how many keys a walk visits between two checks whether the client is still connected.
const idsStep = 1024

// takeCursor takes the options of an iteration over ids; match: MATCH is one.
func takeCursor(c *command.Call, match bool) (o command.ScanOptions, cursor uint64, err error) {
	o = command.ScanOptions{Pattern: glob.New([]byte("*"), false), Count: command.DefaultScanCount}
	for c.Args.More() {
		switch {
		case c.Args.Word("CURSOR"):
			cursor = c.Args.Cursor()
		case match && c.Args.Word("MATCH"):
			o.Pattern.Text = c.Args.Next()
		case c.Args.Word("COUNT"):
			o.Count = int(parseAmount(&c.Args, "COUNT", 1))
		default:
			c.Args.Fail(engine.ErrSyntax)
		}
	}
	return o, cursor, c.Args.End()
}

// mergeCursor returns command.MergeScan with the cursor behind its keyword, among options from a
// word on.
func mergeCursor(options int) func(*command.Merger) {
	return func(m *command.Merger) {
		for i := options; i+1 < len(m.Words); i += 2 {
			if grammar.EqualFold(m.Words[i], "CURSOR") {
				command.MergeScanAt(m, i+1)
				return
			}
		}
		m.Words = append(slices.Clone(m.Words), []byte("CURSOR"), []byte("0"))
		command.MergeScanAt(m, len(m.Words)-1)
	}
}
