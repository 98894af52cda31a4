package limits

import (
	"strings"

	"rlserver/engine"
	"rlserver/engine/rule"
	"rlserver/internal/grammar"
	"rlserver/resp/command"
)

func init() {
	command.Register("ratelimit",
		&command.Command{Name: "rl.charge", Arity: -6, Flags: command.Write | command.DenyOOM | command.Fast,
			Keys:   command.OneKey("RW access update"),
			Syntax: "key <" + chargeForms(" | ") + " | MULTI limit window [limit window ...]> hits", Since: "1.0.0",
			Complexity: "that of RL.TOKEN, RL.SLIDE and so on",
			Summary: "Records hits that have happened, beyond the limit too. Replies 1 if they were within it, " +
				"otherwise 0 and when another call like it would be admitted.", Run: charge},
	)
}

// chargeForms returns the syntax of the rules that count hits.
func chargeForms(between string) string {
	var forms []string
	for _, a := range rule.Algorithms() {
		if !a.HasID {
			forms = append(forms, a.Name+" "+a.Syntax())
		}
	}
	return strings.Join(forms, between)
}

var (
	errChargeRule = engine.Error("ERR RL.CHARGE takes a key, a rule and the hits: the rule is " + chargeForms(", ") +
		" or MULTI limit window [limit window ...]")
	errChargeLease = engine.Error("ERR RL.CHARGE records hits, and leases have none: take one with RL.LEASE")
)

// charge handles RL.CHARGE key rule hits.
func charge(c *command.Call) error {
	multi := grammar.EqualFold(c.Args.List[1], "MULTI")
	limits, err := parseCharged(c, multi)
	if err != nil {
		return err
	}
	hits := parseAmount(&c.Args, "hits", 0)
	if err := c.Args.End(); err != nil {
		return err
	}
	for i := range limits {
		limits[i].Cost = hits
	}
	d, err := c.Tx.Charge(limits)
	if err != nil {
		return err
	}

	c.Decided(hits, d)
	if multi {
		writeRuledDecision(&c.Reply, d)
	} else {
		WriteDecision(&c.Reply, d)
	}
	return nil
}

// parseCharged parses a key and its rule: several for MULTI.
func parseCharged(c *command.Call, multi bool) ([]engine.Limit, error) {
	a, length := command.Rule(c.Args.List)
	switch {
	case multi:
		return parseChargedWindows(c)
	case a == nil:
		return nil, errChargeRule
	case a.HasID:
		return nil, errChargeLease
	case length >= len(c.Args.List):
		return nil, errChargeRule
	}
	limits := append(c.Limits[:0], engine.Limit{})
	c.Limits = limits
	parseRule(&c.Args, a, length, &limits[0])
	return limits, nil
}

// parseChargedWindows parses the key and the windows of MULTI, which have one log.
func parseChargedWindows(c *command.Call) ([]engine.Limit, error) {
	k := c.Args.Key()
	c.Args.Next()
	windows := c.Args.Left() / 2
	switch {
	case c.Args.Left()%2 == 0 || windows == 0:
		return nil, errChargeRule
	case windows > MaxWindows:
		return nil, command.ErrTooManyWindows
	}
	limits := make([]engine.Limit, windows)
	for i := range limits {
		limits[i] = engine.Limit{Key: k, Rule: rule.Rule{Kind: rule.Slide, Slide: TakeSlidingRule(&c.Args)}}
	}
	return limits, nil
}
