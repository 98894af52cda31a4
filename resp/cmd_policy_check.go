package resp

import (
	"bytes"

	"rlserver/engine"
	"rlserver/engine/limit"
)

func init() {
	register(
		&command{name: "rl.check", arity: -3, flags: write | denyOOM | fast | blocking, keys: []keySpec{key("RW access update", 1)}, hashKeys: checkKeys,
			syntax: "id policy [policy ...] [COST cost] [ID request] [WAIT timeout]", group: "ratelimit", since: "1.0.0",
			complexity: "that of the policies' algorithms, together",
			summary:    "Admits a call if all of the policies have room for it under an id, and records it for each.",
			example: "> RL.POLICY SET burst SLIDE 2 1s\n\"OK\"\n> RL.POLICY SET daily FIXED 1000 day\n\"OK\"\n" +
				"> RL.CHECK ann burst daily COST 2\n1) (integer) 1\n2) (integer) 2\n3) (integer) 0\n4) (integer) 0\n5) (integer) 86400000\n6) (integer) 0\n" +
				"> RL.CHECK ann burst daily\n1) (integer) 0\n2) (integer) 2\n3) (integer) 0\n4) (integer) 1000\n5) (integer) 86400000\n6) (integer) 0",
			run: checkPolicies},
	)
}

const (
	maxPolicies = 128         // that one RL.CHECK may name
	maxCheckID  = longestWord // bytes of an id, which goes into the name of a key for each policy

	errTooManyPolicies = engine.Error("ERR too many policies: RL.CHECK takes at most 128")
	errCheckID         = engine.Error("ERR the id of RL.CHECK must be 1 to 65536 bytes without { and }")
)

// checkPolicies handles RL.CHECK id policy [policy ...] [COST cost] [ID request] [WAIT timeout].
func checkPolicies(c *call) error {
	if !goodCheckID(c.args.next()) {
		return errCheckID
	}
	names := policyNames(c.args.list)
	if len(names) > maxPolicies {
		return errTooManyPolicies
	}
	c.args.list = c.args.list[len(names):]
	o := c.args.options(optionCost|optionID|optionWait, nil, nil)
	if err := c.args.end(); err != nil {
		return err
	}

	keys := c.args.keys
	d, err := c.admit(func() (limit.Decision, error) { return c.tx.Check(names, keys, o.cost, o.id) })
	if err != nil {
		return err
	}

	c.decided(o.cost, d)
	c.reply.ruledDecision(d)
	return nil
}

func goodCheckID(id []byte) bool {
	return len(id) > 0 && len(id) <= maxCheckID && !bytes.ContainsAny(id, "{}")
}

// policyNames are the words up to the first option, which no policy is called by. The first word is a name in any case.
func policyNames(words [][]byte) [][]byte {
	for i, word := range words {
		if i > 0 && (equalFold(word, "COST") || equalFold(word, "ID") || equalFold(word, "WAIT")) {
			return words[:i]
		}
	}
	return words
}

// checkKeys hashes the keys of RL.CHECK, `policy:{id}` for each policy: to a cluster they are in the slot of the id. A call that will be refused
// has none.
func checkKeys(h *hasher, words [][]byte) {
	id, names := words[1], policyNames(words[2:])
	if !goodCheckID(id) || len(names) > maxPolicies {
		return
	}
	for _, name := range names {
		start := len(h.names)
		h.names = append(append(append(append(h.names, name...), ":{"...), id...), '}')
		h.keys = append(h.keys, h.engine.Key(h.names[start:len(h.names):len(h.names)]))
	}
}
