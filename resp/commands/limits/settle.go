package limits

import (
	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/engine/reserve"
	"rlserver/engine/rule"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
)

func init() {
	settleKeys := command.KeysFound("RW access update", 1, nextSettled)
	command.Register("ratelimit",
		&command.Command{Name: "rl.settle", Arity: -5, Flags: command.Write | command.Fast,
			Keys: []command.KeySpec{settleKeys}, HashKeys: keysOfSettle,
			Syntax: "<key actual [key actual ...] | CHECK id policy [policy ...] COST actual [actual ...]> ID call",
			Since:  "1.0.0", Complexity: "O(K*log(N)) with K the keys and N the reservations of a key",
			Summary: "Makes the reservations of a call final, all or none: what it has used is charged, beyond " +
				"the limit too, and the rest comes back. Replies with settled (0 if it was settled before), " +
				"reserved, actual and remaining for each key.", CountsOnce: command.Always, Run: settle},
		&command.Command{Name: "rl.holds", Arity: 2, Flags: command.Readonly,
			Keys: command.OneKey("RO access"), Syntax: "key", Since: "1.0.0",
			Complexity: "O(N) with N the open reservations",
			Summary:    "Lists the open reservations of a key: the call, the amount, and in how many ms it lapses.",
			Run:        holds},
	)
}

const (
	errHoldNeedsID = engine.Error("ERR HOLD needs ID and the call's id")
	errNoHold      = engine.Error("ERR HOLD is for calls that reserve their cost: RL.SLIDE, RL.MULTI, RL.TOKEN, " +
		"RL.FIXED, RL.COUNTER, RL.ALL and RL.CHECK")
	errManyCosts   = engine.Error("ERR COST takes one number here: only RL.ALL and RL.CHECK take one for each limit")
	errHoldNothing = engine.Error("ERR HOLD reserves the cost: COST must be 1 or more")
	errIDWithHold  = engine.Error("ERR ID goes with HOLD here: only sliding windows know their hits by name")
	errTooManyKeys = engine.Error("ERR too many keys: RL.SETTLE takes at most 128, as many as the rules of RL.ALL")
	errSettle      = engine.Error("ERR syntax error: RL.SETTLE takes key actual [key actual ...] ID call, or " +
		"CHECK id policy [policy ...] COST actual [actual ...] ID call")
)

// request returns what a call reserves. named: its ID names hits too.
func (o *options) request(cost int64, named bool) (r reserve.Request, err error) {
	switch {
	case o.ttl == 0 && o.id != nil && !named:
		return r, errIDWithHold
	case o.ttl == 0:
		return r, nil
	case o.id == nil:
		return r, errHoldNeedsID
	case cost == 0:
		return r, errHoldNothing
	}
	return reserve.Request{Call: o.id, TTL: o.ttl}, nil
}

// settlesPolicies reports whether an RL.SETTLE is of policies. A key may have the name CHECK if it
// is the only one.
func settlesPolicies(words [][]byte) bool {
	return len(words) > 5 && grammar.EqualFold(words[1], "CHECK")
}

// nextSettled finds the words of an RL.SETTLE that are keys, see command.KeysFound: of policies the
// id, by which clients of a cluster choose a node as for RL.CHECK.
func nextSettled(words [][]byte, at int) (key, behind int) {
	switch policies := settlesPolicies(words); {
	case policies && at == 1:
		return 2, len(words)
	case policies || at > len(words)-3:
		return 0, 0
	}
	return at, at + 2
}

// keysOfSettle hashes the keys of RL.SETTLE, as those of RL.CHECK for policies.
func keysOfSettle(h *command.Hasher, words [][]byte) {
	if settlesPolicies(words) {
		checkKeys(h, words[1:])
		return
	}
	for i := 1; i < len(words)-2; i += 2 {
		h.AddName(words[i])
	}
}

// settle handles RL.SETTLE.
func settle(c *command.Call) error {
	words := c.Args.List
	n := len(words) - 2
	if n < 2 || !grammar.EqualFold(words[n], "ID") {
		return errSettle
	}
	call := words[n+1]
	if len(call) == 0 {
		return command.ErrEmptyID
	}
	if len(words) > 4 && grammar.EqualFold(words[0], "CHECK") {
		return settlePolicies(c, words[1:n], call)
	}
	switch {
	case n%2 != 0:
		return errSettle
	case n/2 > maxRules:
		return errTooManyKeys
	}
	c.Costs = c.Costs[:0]
	for i := 1; i < n; i += 2 {
		actual, err := rule.Count("actual", words[i], 0, limit.MaxCount)
		if err != nil {
			return err
		}
		c.Costs = append(c.Costs, actual)
	}
	return replySettled(c)(c.Tx.Settle(c.Args.Keys, c.Costs, call))
}

// settlePolicies handles RL.SETTLE CHECK id policy [policy ...] COST actual [actual ...] ID call.
func settlePolicies(c *command.Call, words [][]byte, call []byte) error {
	id, names := words[0], policyNames(words[1:])
	rest := words[1+len(names):]
	switch {
	case !validCheckID(id):
		return errCheckID
	case len(names) > MaxPolicies:
		return errTooManyPolicies
	case len(rest) < 2 || !grammar.EqualFold(rest[0], "COST"):
		return errSettle
	}
	if _, err := readCosts(c, rest[1:], len(names), "policies"); err != nil {
		return err
	}
	for len(c.Costs) < len(names) {
		c.Costs = append(c.Costs, c.Costs[0])
	}
	check := engine.CheckCall{Names: names, Keys: c.Args.Keys, Of: id, Costs: c.Costs, ID: call}
	return replySettled(c)(c.Tx.SettleChecked(check))
}

// replySettled replies with what a call has settled, whose actual amounts are c.Costs.
func replySettled(c *command.Call) func([]reserve.Settled, error) error {
	return func(list []reserve.Settled, err error) error {
		if err != nil {
			return err
		}
		c.Reply.Array(len(list))
		for i, s := range list {
			c.Reply.Array(4)
			c.Reply.Flag(s.First)
			c.Reply.Integer(s.Reserved)
			c.Reply.Integer(c.Costs[i])
			c.Reply.Integer(s.Remaining)
		}
		return nil
	}
}

// holds handles RL.HOLDS key.
func holds(c *command.Call) error {
	book, err := c.Tx.Reservations(c.Args.Key())
	if err != nil {
		return err
	}
	now := c.Tx.Now()
	c.Reply.Array(int(book.Open(now)))
	for r := range book.All(book.Over(now)) {
		c.Reply.Array(3)
		c.Reply.Bulk(r.Call)
		c.Reply.Integer(r.Amount)
		c.Reply.Integer(r.Until - now)
	}
	return nil
}
