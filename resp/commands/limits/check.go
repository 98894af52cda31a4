package limits

import (
	"bytes"
	"net/netip"

	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/engine/rule"
	"rlserver/resp/command"
)

func init() {
	command.Register("ratelimit",
		&command.Command{Name: "rl.check", Arity: -3,
			Flags: command.Write | command.DenyOOM | command.Fast | command.Blocking,
			Keys:  command.OneKey("RW access update"), HashKeys: checkKeys,
			Syntax:     "id policy [policy ...] [COST cost [cost ...]] [HOLD ttl] [ID request] [WAIT timeout | FORCE]",
			Since:      "1.0.0",
			Complexity: "that of the policies' algorithms, together",
			Summary: "Admits a call if all of the policies admit it for an id, and records it for each; with " +
				"FORCE also a call that they do not admit.",
			Options: checkOptions, Run: checkPolicies},
	)
}

const (
	MaxPolicies = 128 // maximum of one RL.CHECK
	// MaxCheckID is the maximum length of an id in bytes, which is in the name of a key for each
	// policy.
	MaxCheckID = command.MaxWordLen

	errTooManyPolicies = engine.Error("ERR too many policies: RL.CHECK takes at most 128")
	errForceWaits      = engine.Error("ERR FORCE records the call at once: RL.CHECK takes FORCE or WAIT, not both")
	errForceHolds      = engine.Error("ERR FORCE records the call at once: RL.CHECK takes FORCE or HOLD, not both")
	errCheckID         = engine.Error("ERR the id of RL.CHECK must be 1 to 65536 bytes without { and }")
)

// checkPolicies handles RL.CHECK id policy [policy ...] [COST cost [cost ...]] [ID request] [WAIT
// timeout | FORCE].
func checkPolicies(c *command.Call) error {
	id := c.Args.Next()
	if !validCheckID(id) {
		return errCheckID
	}
	names := policyNames(c.Args.List)
	if len(names) > MaxPolicies {
		return errTooManyPolicies
	}
	c.Args.List = c.Args.List[len(names):]
	o := TakeOptions(&c.Args, optionCosts|optionID|optionHold|OptionWait|optionForce, nil, nil)
	if err := c.Args.End(); err != nil {
		return err
	}

	switch {
	case o.force && c.Args.Wait > 0:
		return errForceWaits
	case o.force && o.ttl > 0:
		return errForceHolds
	}
	most, err := readCosts(c, o.costs, len(names), "policies")
	if err != nil {
		return err
	}
	hold, err := o.request(most, true)
	if err != nil {
		return err
	}
	call := engine.CheckCall{
		Names: names, Keys: c.Args.Keys, Of: id, Costs: c.Costs, ID: o.id, TTL: hold.TTL, Force: o.force,
	}
	d, err := c.Admit(most, func(most int64) (limit.Decision, error) {
		if most == 0 {
			clear(call.Costs)
		}
		return c.Tx.Check(call)
	})
	if err != nil {
		return err
	}

	c.CountsOnce = o.id != nil && c.Tx.CheckCountsOnce()
	c.Decided(most, d)
	writeRuledDecision(&c.Reply, d)
	return nil
}

func validCheckID(id []byte) bool {
	return len(id) > 0 && len(id) <= MaxCheckID && bytes.IndexByte(id, '{') < 0 && bytes.IndexByte(id, '}') < 0
}

// policyNames returns the words up to the first option; the first word is always a name. No policy
// can have the name of an option.
func policyNames(words [][]byte) [][]byte {
	for i, word := range words {
		if i > 0 && rule.IsCheckOption(word) {
			return words[:i]
		}
	}
	return words
}

// checkOptions returns where the options of RL.CHECK begin: behind the policies. Whether a call
// counts once depends on these.
func checkOptions(words [][]byte) int { return 2 + len(policyNames(words[2:])) }

// checkKeys hashes the keys of RL.CHECK. A call that is going to be refused has no keys.
func checkKeys(h *command.Hasher, words [][]byte) {
	id, names := words[1], policyNames(words[2:])
	if !validCheckID(id) || len(names) > MaxPolicies {
		return
	}
	addPolicyKeys(h, id, names)
}

// addPolicyKeys hashes the keys of an id under policies, policy:{id} each: in a cluster they are in
// the slot of the id. An id that is an address has the key of its network where a policy says so,
// and the slot of the network: so that it counts in one place whatever address is used. Policies
// that make other networks of an address have keys in other slots, and cannot be in one call then.
//
// The policies may change until the keys are locked: a handler has to ask Tx.KeysHold, or Check.
func addPolicyKeys(h *command.Hasher, id []byte, names [][]byte) {
	address, networks := netip.Addr{}, h.Engine.CountsNetworks()
	if networks {
		address, networks = rule.Address(id)
	}
	for _, name := range names {
		start := len(h.Names)
		h.Names = append(append(h.Names, name...), ":{"...)
		if networks {
			h.Names = h.Engine.NetworksOf(name).Append(h.Names, id, address)
		} else {
			h.Names = append(h.Names, id...)
		}
		h.Names = append(h.Names, '}')
		h.AddName(h.Names[start:len(h.Names):len(h.Names)])
	}
}
