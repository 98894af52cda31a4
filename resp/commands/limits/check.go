package limits

import (
	"bytes"

	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
)

func init() {
	command.Register("ratelimit",
		&command.Command{Name: "rl.check", Arity: -3,
			Flags: command.Write | command.DenyOOM | command.Fast | command.Blocking,
			Keys:  command.OneKey("RW access update"), HashKeys: checkKeys,
			Syntax: "id policy [policy ...] [COST cost] [ID request] [WAIT timeout]", Since: "1.0.0",
			Complexity: "that of the policies' algorithms, together",
			Summary:    "Admits a call if all of the policies admit it for an id, and records it for each.",
			Options:    checkOptions, Run: checkPolicies},
	)
}

const (
	MaxPolicies = 128 // maximum of one RL.CHECK
	// MaxCheckID is the maximum length of an id in bytes, which is in the name of a key for each
	// policy.
	MaxCheckID = command.MaxWordLen

	errTooManyPolicies = engine.Error("ERR too many policies: RL.CHECK takes at most 128")
	errCheckID         = engine.Error("ERR the id of RL.CHECK must be 1 to 65536 bytes without { and }")
)

// checkPolicies handles RL.CHECK id policy [policy ...] [COST cost] [ID request] [WAIT timeout].
func checkPolicies(c *command.Call) error {
	if !validCheckID(c.Args.Next()) {
		return errCheckID
	}
	names := policyNames(c.Args.List)
	if len(names) > MaxPolicies {
		return errTooManyPolicies
	}
	c.Args.List = c.Args.List[len(names):]
	o := TakeOptions(&c.Args, OptionCost|optionID|OptionWait, nil, nil)
	if err := c.Args.End(); err != nil {
		return err
	}

	keys := c.Args.Keys
	d, err := c.Admit(o.Cost, func(cost int64) (limit.Decision, error) { return c.Tx.Check(names, keys, cost, o.id) })
	if err != nil {
		return err
	}

	c.CountsOnce = o.id != nil && c.Tx.CheckCountsOnce()
	c.Decided(o.Cost, d)
	writeRuledDecision(&c.Reply, d)
	return nil
}

func validCheckID(id []byte) bool {
	return len(id) > 0 && len(id) <= MaxCheckID && !bytes.ContainsAny(id, "{}")
}

// policyNames returns the words up to the first option; the first word is always a name. No policy
// can have the name of an option.
func policyNames(words [][]byte) [][]byte {
	for i, word := range words {
		if i > 0 &&
			(grammar.EqualFold(word, "COST") || grammar.EqualFold(word, "ID") || grammar.EqualFold(word, "WAIT")) {
			return words[:i]
		}
	}
	return words
}

// checkOptions returns where the options of RL.CHECK begin: behind the policies. Whether a call
// counts once depends on these.
func checkOptions(words [][]byte) int { return 2 + len(policyNames(words[2:])) }

// checkKeys hashes the keys of RL.CHECK, policy:{id} for each policy: in a cluster they are in the
// slot of the id. A call that is going to be refused has no keys.
func checkKeys(h *command.Hasher, words [][]byte) {
	id, names := words[1], policyNames(words[2:])
	if !validCheckID(id) || len(names) > MaxPolicies {
		return
	}
	for _, name := range names {
		start := len(h.Names)
		h.Names = append(append(append(append(h.Names, name...), ":{"...), id...), '}')
		h.AddName(h.Names[start:len(h.Names):len(h.Names)])
	}
}
