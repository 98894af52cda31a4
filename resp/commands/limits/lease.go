package limits

import (
	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/engine/rule"
	"rlserver/resp/command"
)

func init() {
	one := "key <" + rule.Forms(" | ", " | ", true) + ">"
	command.Register("ratelimit",
		&command.Command{Name: "rl.all", Arity: -5,
			Flags:  command.Write | command.DenyOOM | command.Fast | command.Blocking,
			Keys:   []command.KeySpec{command.KeysOfRules("RW access update", 1)},
			Syntax: one + " [" + one + " ...] [COST cost [cost ...]] [HOLD ttl ID id] [WAIT timeout]", Since: "1.0.0",
			Complexity: "O(R*(R+log(N)+C)) with R the rules, at most 128, N the hits or leases of a key and C " +
				"the cost of a sliding window",
			Summary: "Admits a call if all of several limits, of any kinds and on any keys, admit it, and " +
				"records it in each. Otherwise changes nothing.", Options: allOptions, CountsOnce: countsOnce,
			Run: all},
		&command.Command{Name: "rl.lease", Arity: -5,
			Flags: command.Write | command.DenyOOM | command.Fast | command.Blocking,
			Keys:  command.OneKey("RW access update"), Syntax: "key limit ttl id [WAIT timeout]", Since: "1.0.0",
			Complexity: "O(log(N)+M) with N the leases held and M those that have expired",
			Summary: "Takes one of a limited number of leases, or renews the lease of the id. It expires " +
				"after ttl.", Options: command.OptionsAt(5), CountsOnce: command.Always,
			Run: decide(rule.Lease, OptionWait)},
		&command.Command{Name: "rl.release", Arity: 3, Flags: command.Write | command.Fast,
			Keys: command.OneKey("RW access delete"), Syntax: "key id", Since: "1.0.0",
			Complexity: "O(log(N)+M) with N the leases held and M those that have expired",
			Summary:    "Releases a lease. Replies 1, or 0 if the id holds none.", CountsOnce: command.Always,
			Run: release},
		&command.Command{Name: "rl.refund", Arity: -3, Flags: command.Write | command.Fast,
			Keys: command.OneKey("RW access update"), Syntax: "key hits [ID id]", Since: "1.0.0",
			Complexity: "O(1) for buckets and fixed windows, O(log(N)+M) for logs with N the hits in it and M " +
				"those refunded or recorded under the id, and, without ID, those of the same millisecond",
			Summary: "Refunds hits to a limiter, at most as many as are used: the newest, or those of the " +
				"id. Replies with their number.", Run: refund},
		&command.Command{Name: "rl.leaky", Arity: -4, Flags: command.Write | command.DenyOOM | command.Fast,
			Keys: command.OneKey("RW access update"), Syntax: "key rate period [QUEUE queue] [COST cost]",
			Since: "1.0.0", Complexity: "O(1)",
			Summary: "Paces calls with a leaky bucket: the sixth integer is how many ms an admitted caller " +
				"has to wait before it proceeds. A call is denied if more than QUEUE calls (0 by default) " +
				"would be waiting.", Run: decide(rule.Leaky, OptionCost)},
	)
}

const (
	maxRules  = 128 // maximum of one RL.ALL
	keptRules = 8   // a session keeps memory for so many rules between calls
)

var errRule = engine.Error("ERR syntax error: a rule is a key and " + rule.Forms(", ", " or ", true) +
	"; COST cost [cost ...], HOLD ttl ID id and WAIT timeout may follow the rules")

// all handles RL.ALL rule [rule ...] [COST cost [cost ...]] [HOLD ttl ID id] [WAIT timeout].
func all(c *command.Call) error {
	limits := c.Limits[:0]
	for a, length := command.Rule(c.Args.List); c.Args.More() && (a != nil || len(limits) == 0); {
		if len(limits) == maxRules {
			return command.ErrTooManyRules
		}
		limits = append(limits, engine.Limit{})
		parseRule(&c.Args, a, length, &limits[len(limits)-1])
		a, length = command.Rule(c.Args.List)
	}
	if cap(limits) <= keptRules {
		c.Limits = limits
	}
	o := TakeOptions(&c.Args, optionCosts|optionID|optionHold|OptionWait, nil, nil)
	switch err := c.Args.End(); {
	case err == engine.ErrSyntax: // most likely a rule that is incomplete
		return errRule
	case err != nil:
		return err
	}

	most, err := readCosts(c, o.costs, len(limits), "rules")
	if err != nil {
		return err
	}
	hold, err := o.request(most, false)
	if err != nil {
		return err
	}
	d, err := c.Admit(most, func(most int64) (limit.Decision, error) {
		if most == 0 {
			clear(c.Costs)
		}
		for i := range limits {
			limits[i].Hold = hold
			limits[i].Cost = c.Costs[min(i, len(c.Costs)-1)]
		}
		return c.Tx.All(limits)
	})
	if err != nil {
		return err
	}

	c.Decided(most, d)
	writeRuledDecision(&c.Reply, d)
	return nil
}

// allOptions returns where the options of RL.ALL begin: behind the rules.
func allOptions(words [][]byte) int {
	i := 1
	for i < len(words) && command.BeginsRule(words[i:]) {
		i += command.RuleLength(words[i:])
	}
	return i
}

// countsOnce reports whether an RL.ALL records nothing more when it is repeated.
func countsOnce(words [][]byte) bool { return onlyLeases(words) || hasID(allOptions)(words) }

// onlyLeases reports whether all rules of an RL.ALL are leases, which a repeated call renews.
func onlyLeases(words [][]byte) bool {
	for i := 1; i < len(words) && command.BeginsRule(words[i:]); i += command.RuleLength(words[i:]) {
		if !rule.Find(words[i+1]).HasID {
			return false
		}
	}
	return true
}

// parseRule parses a key, its algorithm and the algorithm's fields: length words, see command.Rule.
func parseRule(a *command.Args, algorithm *rule.Algorithm, length int, l *engine.Limit) {
	if algorithm == nil || length > len(a.List) {
		a.Fail(errRule)
		return
	}
	key := a.Key()
	a.Next()
	parseFields(a, algorithm, l)
	l.Key = key
	for seen := 0; a.More() && command.OptionFollows(algorithm, a.List) &&
		parseAlgorithmOption(a, algorithm, l, &seen); {
	}
}

func parseLeaseID(a *command.Args) []byte {
	id := a.Next()
	if len(id) == 0 {
		a.Fail(command.ErrEmptyLease)
	}
	return id
}

// release handles RL.RELEASE key id.
func release(c *command.Call) error {
	k, id := c.Args.Key(), parseLeaseID(&c.Args)
	if err := c.Args.End(); err != nil {
		return err
	}

	return c.ReplyFlag(c.Tx.Release(k, id))
}

// refund handles RL.REFUND key hits [ID id].
func refund(c *command.Call) error {
	k, n := c.Args.Key(), parseAmount(&c.Args, "hits", 1)
	o := TakeOptions(&c.Args, optionID, nil, nil)
	if err := c.Args.End(); err != nil {
		return err
	}

	return c.ReplyInteger(c.Tx.Refund(k, n, o.id))
}
