package limits

import (
	"slices"
	"strconv"

	"rlserver/engine"
	"rlserver/engine/object"
	"rlserver/engine/overrides"
	"rlserver/engine/policy"
	"rlserver/engine/rule"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
)

// RL.POLICY SET, GET, DEL and LIST with FOR: other numbers of a policy for one id. In a cluster the
// calls run where the key of the id is.

const (
	errForAlone = engine.Error("ERR a policy has its BAN, IP4, IP6 and SHADOW for all ids: FOR takes other numbers " +
		"of the same algorithm")
	errForMany    = engine.Error("ERR FOR takes one policy: RL.POLICY name FOR id")
	errForInMulti = engine.Error("ERR FOR is not available in a transaction of a cluster")
)

// takeFor takes FOR and its id from words behind the name of a policy; id is nil without it.
func takeFor(words [][]byte) (id []byte, rest [][]byte) {
	for i := 1; i+1 < len(words); i++ {
		if grammar.EqualFold(words[i], "FOR") {
			return words[i+1], slices.Concat(words[:i], words[i+2:])
		}
	}
	return nil, words
}

// overrideKey returns the key of an id under a policy.
func overrideKey(e *engine.Engine, name, id []byte) (engine.Key, error) {
	if !validCheckID(id) {
		return engine.Key{}, errCheckID
	}
	h := command.Hasher{Engine: e}
	addPolicyKeys(&h, id, [][]byte{name})
	return h.Keys[0], nil
}

// atOverride is Command.RunsAt of RL.POLICY SET, GET and DEL: with FOR the key of the id.
func atOverride(e *engine.Engine, words [][]byte) (key []byte, group int) {
	id, rest := takeFor(words[2:])
	if id == nil {
		return nil, 0
	}
	k, _ := overrideKey(e, rest[0], id)
	return k.Name, 0
}

// overrideSet handles RL.POLICY SET name algorithm argument [argument ...] FOR id.
func overrideSet(c *command.Call, id []byte, words [][]byte) error {
	d, err := rule.ParsePolicy(words[0], words[1:])
	if err != nil {
		return err
	}
	if d.HasOptions() {
		return errForAlone
	}
	if c.EvictFor(engine.LargeGrowth); c.Env.Engine.Crowded() {
		return engine.ErrOutOfMemory
	}
	k, err := overrideKey(c.Env.Engine, words[0], id)
	if err == nil {
		err = overrides.Set(c.Env.Engine, c.Env.Clock(), k, id, d, c.Env.Settings.MaxOverrides.Load())
	}
	if err != nil {
		return err
	}
	policiesChanged(c)

	c.Reply.OK()
	return nil
}

// overrideDel handles RL.POLICY DEL name FOR id.
func overrideDel(c *command.Call, id []byte, words [][]byte) error {
	if len(words) > 1 {
		return errForMany
	}
	k, err := overrideKey(c.Env.Engine, words[0], id)
	if err != nil {
		return err
	}
	found, err := overrides.Delete(c.Env.Engine, c.Env.Clock(), k, words[0], id)
	if err != nil {
		return err
	}
	policiesChanged(c)

	c.Reply.Flag(found)
	return nil
}

// overrideGet handles RL.POLICY GET name FOR id.
func overrideGet(c *command.Call, id []byte, words [][]byte) error {
	if len(words) > 1 {
		return errForMany
	}
	if err := refuseInMulti(c); err != nil {
		return err
	}
	k, err := overrideKey(c.Env.Engine, words[0], id)
	if err != nil {
		return err
	}
	definition := ""
	c.Env.Engine.ViewPolicies(func(v policy.View) { definition, err = v.DefinitionFor(words[0], k.Hash, k.Name) })
	if err != nil {
		return err
	}
	c.Tx.SeeAll()

	c.Reply.BulkOrNull(object.BytesOf(definition), definition != "")
	return nil
}

// refuseInMulti refuses a call within EXEC or a script of a cluster, which runs where other keys
// are.
func refuseInMulti(c *command.Call) error {
	if c.Executing && c.Env.InCluster() {
		return errForInMulti
	}
	return nil
}

// A cursor of RL.POLICY LIST FOR is a group of a cluster, and in the bits below it where the walk
// through its overrides continues, in the upper bits of hashes.
const cursorBits = 48

const maxOverrides = 1000 // of a page

// atCursor is Command.RunsAt of RL.POLICY LIST: with FOR the group that the cursor names.
func atCursor(_ *engine.Engine, words [][]byte) (key []byte, group int) {
	for i := 4; i+1 < len(words); i++ {
		if grammar.EqualFold(words[i], "CURSOR") {
			if cursor, err := strconv.ParseUint(string(words[i+1]), 10, 64); err == nil {
				return nil, int(cursor >> cursorBits)
			}
		}
	}
	return nil, 0
}

// overrideList handles RL.POLICY LIST FOR name [CURSOR cursor] [COUNT count], behind FOR.
func overrideList(c *command.Call) error {
	name := c.Args.Next()
	o, cursor, err := takeCursor(c, false)
	if err != nil {
		return err
	}
	if err := refuseInMulti(c); err != nil {
		return err
	}

	type entry struct{ id, definition string }
	var list []entry
	group := cursor >> cursorBits
	next, more := uint64(0), false
	c.Env.Engine.ViewPolicies(func(v policy.View) {
		next, more, err = v.Scan(name, cursor<<(64-cursorBits), min(o.Count, maxOverrides),
			func(id, definition string) { list = append(list, entry{id, definition}) })
	})
	if err != nil {
		return err
	}
	c.Tx.SeeAll()
	switch {
	case more:
		next = next>>(64-cursorBits) | group<<cursorBits
	case int(group)+1 < len(c.Env.Cluster.View().Groups):
		next = (group + 1) << cursorBits
	default:
		next = 0
	}

	c.Reply.Array(2)
	c.Reply.BulkString(strconv.FormatUint(next, 10))
	c.Reply.Array(len(list))
	for _, e := range list {
		c.Reply.Array(2)
		c.Reply.BulkString(e.id)
		c.Reply.BulkString(e.definition)
	}
	return nil
}
