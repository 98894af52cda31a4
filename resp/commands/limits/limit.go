package limits

import (
	"fmt"

	"rlserver/engine"
	"rlserver/engine/ban"
	"rlserver/engine/limit"
	"rlserver/engine/rule"
	"rlserver/resp/command"
	"rlserver/resp/wire"
)

// callOptions is the syntax of the options of a call against sliding windows.
const callOptions = "[COST cost] [HOLD ttl] [ID id] [BAN denials for [max]] [WAIT timeout]"

func init() {
	command.Register("ratelimit",
		&command.Command{Name: "rl.slide", Arity: -4,
			Flags:  command.Write | command.DenyOOM | command.Fast | command.Blocking,
			Keys:   command.OneKey("RW access update"),
			Syntax: "key limit window " + callOptions,
			Since:  "1.0.0", Complexity: "O(log(N)+C) with N the hits in the window and C the cost",
			Summary: "Admits a call if it fits in an exact sliding window, and records it.",
			Options: command.OptionsAt(4), CountsOnce: hasID(command.OptionsAt(4)),
			Run: decide(rule.Slide, OptionCost|optionID|optionHold|optionBan|OptionWait)},
		&command.Command{Name: "rl.multi", Arity: -4,
			Flags:  command.Write | command.DenyOOM | command.Fast | command.Blocking,
			Keys:   command.OneKey("RW access update"),
			Syntax: "key limit window [limit window ...] " + callOptions, Since: "1.0.0",
			Complexity: "O(W*log(N)+C) with W the windows, N the hits in the longest and C the cost",
			Summary: "Admits a call if it fits in each of several sliding windows over one log, and " +
				"records it once.", Options: multiOptions, CountsOnce: hasID(multiOptions), Run: multi},
		&command.Command{Name: "rl.token", Arity: -5,
			Flags:  command.Write | command.DenyOOM | command.Fast | command.Blocking,
			Keys:   command.OneKey("RW access update"),
			Syntax: "key capacity refill period [COST cost] [HOLD ttl ID id] [BAN denials for [max]] [WAIT timeout]",
			Since:  "1.0.0", Complexity: "O(1)",
			Summary: "Admits a call if a token bucket holds enough tokens, and takes them.",
			Options: command.OptionsAt(5), CountsOnce: hasID(command.OptionsAt(5)),
			Run: decide(rule.Token, OptionCost|optionID|optionHold|optionBan|OptionWait)},
		&command.Command{Name: "rl.fixed", Arity: -4,
			Flags:  command.Write | command.DenyOOM | command.Fast | command.Blocking,
			Keys:   command.OneKey("RW access update"),
			Syntax: "key limit window [COST cost] [HOLD ttl ID id] [BAN denials for [max]] [TZ zone] [WAIT timeout]",
			Since:  "1.0.0", Complexity: "O(1)",
			Summary: "Admits a call if it fits in the current fixed or calendar window, and counts it.",
			Options: command.OptionsAt(4), CountsOnce: hasID(command.OptionsAt(4)),
			Run: decide(rule.Fixed, OptionCost|optionID|optionHold|optionBan|OptionWait)},
		&command.Command{Name: "rl.counter", Arity: -4,
			Flags:  command.Write | command.DenyOOM | command.Fast | command.Blocking,
			Keys:   command.OneKey("RW access update"),
			Syntax: "key limit window [COST cost] [HOLD ttl ID id] [BAN denials for [max]] [WAIT timeout]",
			Since:  "1.0.0", Complexity: "O(1)",
			Summary: "Admits a call if it fits in a sliding window that is estimated from two counts, and " +
				"counts it.", Options: command.OptionsAt(4), CountsOnce: hasID(command.OptionsAt(4)),
			Run: decide(rule.Counter, OptionCost|optionID|optionHold|optionBan|OptionWait)},
	)
}

// decide returns the handler of a command with one limit. Its arguments are the key, the fields of
// the algorithm, and options.
func decide(kind rule.Kind, allowed optionSet) func(*command.Call) error {
	a := kind.Algorithm()
	return func(c *command.Call) error {
		l, cost := c.Last(), int64(1)
		if !l.Has(a, c.Args.List[1:], c.Repeats) {
			o, err := parseCall(c, a, allowed)
			if err != nil {
				return err
			}
			cost = o.Cost
		}
		l.Key, l.Cost = c.Keys[0], cost

		if l.ID != nil && cost > command.LongWork {
			c.TakesLong()
		}
		var d limit.Decision
		var err error
		if c.Args.Wait == 0 { // as Admit does, but without a closure: nearly all calls
			d, err = c.Tx.Decide(&l.Limit)
		} else {
			d, err = c.Admit(cost, func(cost int64) (limit.Decision, error) {
				l.Cost = cost
				return c.Tx.Decide(&l.Limit)
			})
		}
		if err != nil {
			return err
		}

		c.Decided(cost, d)
		if kind == rule.Leaky {
			writeDelayedDecision(&c.Reply, d)
		} else {
			WriteDecision(&c.Reply, d)
		}
		return nil
	}
}

// parseCall parses the rule of a call with one limit, and its options.
func parseCall(c *command.Call, a *rule.Algorithm, allowed optionSet) (o options, err error) {
	l := c.OneLimit()
	c.Args.Key()
	words := c.Args.List
	parseFields(&c.Args, a, &l.Limit)
	if c.Args.Err == nil {
		l.Keep(a, words)
	}
	o = TakeOptions(&c.Args, allowed, a, &l.Limit)
	if err := c.Args.End(); err != nil {
		return o, err
	}
	if allowed&optionHold != 0 && (o.ttl > 0 || o.id != nil) {
		if l.Hold, err = o.request(o.Cost, l.Kind == rule.Slide); err != nil {
			return o, err
		}
		if o.ttl > 0 {
			l.ID = nil
		}
	}
	return o, nil
}

// MaxWindows is the maximum number of windows of one RL.MULTI.
const MaxWindows = 128

// multi handles RL.MULTI key limit window [limit window ...] [COST cost] [HOLD ttl] [ID id] [WAIT
// timeout].
func multi(c *command.Call) error {
	k := c.Args.Key()
	rules := append(c.Rules[:0], TakeSlidingRule(&c.Args))
	for c.Args.More() && command.BeginsNumber(c.Args.List[0]) {
		if len(rules) == MaxWindows {
			return command.ErrTooManyWindows
		}
		rules = append(rules, TakeSlidingRule(&c.Args))
	}
	c.Rules = rules
	o := TakeOptions(&c.Args, OptionCost|optionID|optionHold|optionBan|OptionWait, nil, nil)
	if err := c.Args.End(); err != nil {
		return err
	}
	hold, err := o.request(o.Cost, true)
	if err != nil {
		return err
	}

	if o.id != nil && o.Cost > command.LongWork {
		c.TakesLong()
	}
	d, err := c.Admit(o.Cost, func(cost int64) (limit.Decision, error) {
		if o.ttl > 0 || o.ban != nil {
			l := engine.Limit{Key: k, Cost: cost, Hold: hold, Ban: o.ban}
			if o.ttl == 0 {
				l.ID = o.id
			}
			return c.Tx.SlideAs(l, rules)
		}
		return c.Tx.Slide(k, rules, cost, o.id)
	})
	if err != nil {
		return err
	}

	c.Decided(o.Cost, d)
	writeRuledDecision(&c.Reply, d)
	return nil
}

// multiOptions returns where the options of RL.MULTI begin: behind the windows.
func multiOptions(words [][]byte) int {
	i := 4
	for i < len(words) && command.BeginsNumber(words[i]) {
		i += 2
	}
	return i
}

// hasID returns Command.CountsOnce of a command that counts an id once, but each denial with BAN.
// options is as Command.Options.
func hasID(options func([][]byte) int) func([][]byte) bool {
	return func(words [][]byte) bool {
		first := options(words)
		return command.HasOption(words, first, "ID") && !command.HasOption(words, first, "BAN")
	}
}

// WriteDecision replies with the five integers of every limiter.
func WriteDecision(r *wire.Reply, d limit.Decision) {
	r.Integers([]int64{allowed(d), d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter})
}

// writeRuledDecision replies with the five integers and the index of the rule that they describe.
func writeRuledDecision(r *wire.Reply, d limit.Decision) {
	r.Integers([]int64{allowed(d), d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter, int64(d.Index)})
}

// writeDelayedDecision replies with the five integers and how long to wait before proceeding, in
// ms.
func writeDelayedDecision(r *wire.Reply, d limit.Decision) {
	r.Integers([]int64{allowed(d), d.Limit, d.Remaining, d.RetryAfter, d.ResetAfter, d.Delay})
}

// allowed returns 1 if a call was admitted, otherwise 0.
func allowed(d limit.Decision) int64 {
	if d.Allowed {
		return 1
	}
	return 0
}

// parseFields parses an algorithm's fields.
func parseFields(a *command.Args, algorithm *rule.Algorithm, l *engine.Limit) {
	l.Rule = algorithm.Empty
	for i := range algorithm.Fields {
		parseField(a, &algorithm.Fields[i], l)
	}
	if algorithm.HasID {
		l.ID = parseLeaseID(a)
	}
}

func parseField(a *command.Args, f *rule.Field, l *engine.Limit) {
	word := a.Next()
	if a.Err == nil {
		a.Err = f.Read(word, &l.Rule)
	}
}

// parseAmount parses a count from least (0 or 1) to limit.MaxCount.
func parseAmount(a *command.Args, name string, least int64) (n int64) {
	word := a.Next()
	if a.Err == nil {
		n, a.Err = rule.Count(name, word, least, limit.MaxCount)
	}
	return n
}

// parseDuration parses a duration, and returns it in ms. An error ends with the hint.
func parseDuration(a *command.Args, hint string) (ms int64) {
	word := a.Next()
	if a.Err == nil {
		ms, a.Err = rule.Duration(word, hint)
	}
	return ms
}

func TakeSlidingRule(a *command.Args) limit.Window {
	return limit.Window{Limit: parseAmount(a, "limit", 1), Length: parseDuration(a, "")}
}

// options holds the options of a limiter's call: without COST the cost is 1, and without ID the id
// is nil.
type options struct {
	Cost  int64
	costs [][]byte // of optionCosts: the numbers after COST
	id    []byte
	ttl   int64 // ms, of optionHold; 0: without it
	force bool
	ban   *ban.Rule
}

// optionSet is a set of options that a command takes.
type optionSet uint8

const (
	OptionCost optionSet = 1 << iota
	// COST with one number for all rules or policies, or one for each: see readCosts
	optionCosts
	optionID
	OptionWait // for Call.Admit
	optionForce
	optionHold // with the ID of the call
	optionBan  // of one key
)

// TakeOptions takes the options, in any order and each at most once. Those of an algorithm and the
// ID go to the limit, if there is one.
func TakeOptions(a *command.Args, allowed optionSet, algorithm *rule.Algorithm, l *engine.Limit) options {
	o, seen, holds := options{Cost: 1}, 0, allowed&optionHold != 0
	take := func(option optionSet, word string) bool {
		if allowed&option == 0 || !a.Word(word) {
			return false
		}
		allowed &^= option
		return true
	}
	for a.More() {
		switch {
		case take(OptionCost, "COST"):
			if o.Cost = parseAmount(a, "COST", 0); a.Err == nil && a.More() && command.BeginsNumber(a.List[0]) {
				a.Fail(errManyCosts)
			}
		case take(optionCosts, "COST"):
			o.costs = takeNumbers(a)
		case take(optionID, "ID"):
			if o.id = a.Next(); a.Err == nil && len(o.id) == 0 {
				a.Fail(command.ErrEmptyID)
			}
			if l != nil {
				l.ID = o.id
			}
		case take(OptionWait, "WAIT"):
			a.Wait = parseDuration(a, "; WAIT takes from 1ms to 10 years, and a call without it does not wait")
		case take(optionHold, "HOLD"):
			o.ttl = parseDuration(a, "; HOLD takes from 1ms to 10 years")
		case take(optionBan, "BAN"):
			o.ban = takeBan(a)
			if l != nil {
				l.Ban = o.ban
			}
		case take(optionForce, "FORCE"):
			o.force = true
		case !holds && a.Word("HOLD"):
			a.Fail(errNoHold)
		case algorithm == nil || !parseAlgorithmOption(a, algorithm, l, &seen):
			a.Fail(engine.ErrSyntax)
		}
	}
	return o
}

// parseAlgorithmOption parses the next argument if it is an option of the algorithm that has not
// been given yet.
func parseAlgorithmOption(a *command.Args, algorithm *rule.Algorithm, l *engine.Limit, seen *int) bool {
	i := algorithm.OptionIndex(a.List[0])
	if i < 0 || *seen&(1<<i) != 0 {
		return false
	}
	*seen |= 1 << i
	a.Next()
	parseField(a, &algorithm.Options[i], l)
	return true
}

// takeBan takes the values of BAN.
func takeBan(a *command.Args) *ban.Rule {
	r, n, err := rule.ReadBan(a.List)
	if a.List = a.List[n:]; err != nil {
		a.Fail(err)
	}
	return &r
}

// takeNumbers takes the arguments up to the next option, at least one.
func takeNumbers(a *command.Args) [][]byte {
	list := a.List
	for a.Next(); a.More() && command.BeginsNumber(a.List[0]); a.Next() {
	}
	return list[:len(list)-len(a.List)]
}

// readCosts parses the numbers after COST into c.Costs: one for all, or one for each of n rules or
// policies. It returns the largest.
func readCosts(c *command.Call, words [][]byte, n int, each string) (most int64, err error) {
	if len(words) == 0 {
		c.Costs = append(c.Costs[:0], 1)
		return 1, nil
	}
	if len(words) != 1 && len(words) != n {
		const format = "ERR COST takes one number, or one for each of the %d %s: it has %d"
		return 0, engine.Error(fmt.Sprintf(format, n, each, len(words)))
	}
	c.Costs = c.Costs[:0]
	for _, word := range words {
		cost, err := rule.Count("COST", word, 0, limit.MaxCount)
		if err != nil {
			return 0, err
		}
		c.Costs, most = append(c.Costs, cost), max(most, cost)
	}
	return most, nil
}
