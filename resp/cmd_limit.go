package resp

import (
	"fmt"
	"time"

	"rlserver/engine"
	"rlserver/engine/limit"
)

func init() {
	register(
		&command{name: "rl.slide", arity: -4, flags: write | denyOOM | fast | blocking, keys: []keySpec{key("RW access update", 1)},
			syntax: "key limit window [COST cost] [ID id] [WAIT timeout]", group: "ratelimit", since: "1.0.0",
			complexity: "O(log(N)+C) with N the hits in the window and C the cost",
			summary:    "Admits a call if an exact sliding window has room for it, and records it.",
			example: "> RL.SLIDE login:ann 3 1m\n1) (integer) 1\n2) (integer) 3\n3) (integer) 2\n4) (integer) 0\n5) (integer) 60000\n" +
				"> RL.SLIDE login:ann 3 1m COST 3\n1) (integer) 0\n2) (integer) 3\n3) (integer) 2\n4) (integer) 60000\n5) (integer) 60000",
			run: slide},
		&command{name: "rl.multi", arity: -4, flags: write | denyOOM | fast | blocking, keys: []keySpec{key("RW access update", 1)},
			syntax: "key limit window [limit window ...] [COST cost] [ID id] [WAIT timeout]", group: "ratelimit", since: "1.0.0",
			complexity: "O(W*log(N)+C) with W the windows, N the hits in the longest and C the cost",
			summary:    "Admits a call if all of several sliding windows over one log have room for it, and records it once.",
			example: "> RL.MULTI mail:ann 1 1m 5 1h 10 1d\n1) (integer) 1\n2) (integer) 1\n3) (integer) 0\n4) (integer) 0\n5) (integer) 86400000\n6) (integer) 0\n" +
				"> RL.MULTI mail:ann 1 1m 5 1h 10 1d\n1) (integer) 0\n2) (integer) 1\n3) (integer) 0\n4) (integer) 60000\n5) (integer) 86400000\n6) (integer) 0",
			run: multi},
		&command{name: "rl.token", arity: -5, flags: write | denyOOM | fast | blocking, keys: []keySpec{key("RW access update", 1)},
			syntax: "key capacity refill period [COST cost] [WAIT timeout]", group: "ratelimit", since: "1.0.0",
			complexity: "O(1)",
			summary:    "Admits a call if a token bucket holds enough tokens, and takes them.",
			example: "> RL.TOKEN api:ann 10 5 1s COST 8\n1) (integer) 1\n2) (integer) 10\n3) (integer) 2\n4) (integer) 0\n5) (integer) 1600\n" +
				"> RL.TOKEN api:ann 10 5 1s COST 8\n1) (integer) 0\n2) (integer) 10\n3) (integer) 2\n4) (integer) 1200\n5) (integer) 1600",
			run: token},
		&command{name: "rl.fixed", arity: -4, flags: write | denyOOM | fast | blocking, keys: []keySpec{key("RW access update", 1)},
			syntax: "key limit window [COST cost] [TZ zone] [WAIT timeout]", group: "ratelimit", since: "1.0.0",
			complexity: "O(1)",
			summary:    "Admits a call if the current fixed or calendar window has room for it, and counts it.",
			example:    "> RL.FIXED export:ann 100 day TZ Europe/Berlin\n1) (integer) 1\n2) (integer) 100\n3) (integer) 99\n4) (integer) 0\n5) (integer) 82800000",
			run:        fixed},
	)
}

// slide handles RL.SLIDE key limit window [COST cost] [ID id] [WAIT timeout].
func slide(c *call) error {
	k := c.args.key()
	rule := [1]limit.Rule{c.args.slidingRule()}
	o := c.args.options(optionCost | optionID | optionWait)
	if err := c.args.end(); err != nil {
		return err
	}

	d, err := c.admit(func() (limit.Decision, error) { return c.tx.Slide(k, rule[:], o.cost, o.id) })
	if err != nil {
		return err
	}

	c.decided(o.cost, d)
	c.reply.decision(d)
	return nil
}

// maxWindows is how many windows one RL.MULTI may name.
const maxWindows = 128

// multi handles RL.MULTI key limit window [limit window ...] [COST cost] [ID id] [WAIT timeout].
func multi(c *call) error {
	k := c.args.key()
	rules := append(c.rules[:0], c.args.slidingRule())
	for c.args.more() && beginsNumber(c.args.list[0]) {
		if len(rules) == maxWindows {
			return errTooManyWindows
		}
		rules = append(rules, c.args.slidingRule())
	}
	c.rules = rules
	o := c.args.options(optionCost | optionID | optionWait)
	if err := c.args.end(); err != nil {
		return err
	}

	d, err := c.admit(func() (limit.Decision, error) { return c.tx.Slide(k, rules, o.cost, o.id) })
	if err != nil {
		return err
	}

	c.decided(o.cost, d)
	c.reply.ruledDecision(d)
	return nil
}

// token handles RL.TOKEN key capacity refill period [COST cost] [WAIT timeout].
func token(c *call) error {
	k := c.args.key()
	rule := c.args.bucket()
	o := c.args.options(optionCost | optionWait)
	if err := c.args.end(); err != nil {
		return err
	}

	d, err := c.admit(func() (limit.Decision, error) { return c.tx.Token(k, rule, o.cost) })
	if err != nil {
		return err
	}

	c.decided(o.cost, d)
	c.reply.decision(d)
	return nil
}

// fixed handles RL.FIXED key limit window [COST cost] [TZ zone] [WAIT timeout].
func fixed(c *call) error {
	k := c.args.key()
	rule := limit.Fixed{Limit: c.args.amount("limit", 1)}
	window := c.args.next()
	o := c.args.options(optionCost | optionZone | optionWait)
	rule.Window = c.args.fixedWindow(window, o.zone)
	if err := c.args.end(); err != nil {
		return err
	}

	d, err := c.admit(func() (limit.Decision, error) { return c.tx.Fixed(k, rule, o.cost) })
	if err != nil {
		return err
	}

	c.decided(o.cost, d)
	c.reply.decision(d)
	return nil
}

// decision answers with the five integers of every limiter.
func (r *reply) decision(d limit.Decision) {
	r.array(5)
	r.fields(d)
}

// ruledDecision answers with the five and the index of the rule that they speak of.
func (r *reply) ruledDecision(d limit.Decision) {
	r.array(6)
	r.fields(d)
	r.count(d.Rule)
}

func (r *reply) fields(d limit.Decision) {
	r.flag(d.Allowed)
	r.integer(d.Limit)
	r.integer(d.Remaining)
	r.integer(d.RetryAfter)
	r.integer(d.ResetAfter)
}

// amount takes a count from least (0 or 1) to limit.MaxCount.
func (a *args) amount(name string, least int64) int64 { return a.between(name, least, limit.MaxCount) }

// between takes a whole number from least to most.
func (a *args) between(name string, least, most int64) int64 {
	b := a.next()
	if a.err != nil {
		return 0
	}
	n, ok := parseInt(b)
	if !ok {
		a.fail(engine.Error(fmt.Sprintf("ERR value is not an integer or out of range: %s must be from %d to %d", name, least, most)))
	} else if n < least || n > most {
		a.fail(engine.Error(fmt.Sprintf("ERR %s must be from %d to %d", name, least, most)))
	}
	return n
}

// duration takes a length of time, in ms.
func (a *args) duration() int64 { return a.durationOr("") }

// durationOr is duration for an argument of which an error is to tell more.
func (a *args) durationOr(hint string) int64 {
	b := a.next()
	if a.err != nil {
		return 0
	}
	ms, ok := limit.ParseDuration(b)
	if !ok {
		a.fail(invalidDuration(b, hint))
	}
	return ms
}

func invalidDuration(b []byte, orElse string) engine.Error {
	return engine.Error(fmt.Sprintf("ERR invalid duration '%.128s': use seconds, or a number with ms, s, m, h, d or w%s", b, orElse))
}

func (a *args) bucket() limit.Bucket {
	return limit.Bucket{Capacity: a.amount("capacity", 1), Refill: a.amount("refill", 1), Period: a.duration()}
}

func (a *args) slidingRule() limit.Rule {
	return limit.Rule{Limit: a.amount("limit", 1), Window: a.duration()}
}

// beginsNumber tells the limit of one more window from an option.
func beginsNumber(b []byte) bool {
	return len(b) > 0 && (b[0] >= '0' && b[0] <= '9' || b[0] == '-' || b[0] == '+')
}

// options are what may follow the arguments of a limiter: a call without COST costs 1, and one without an id or a zone has nil.
type options struct {
	cost     int64
	id, zone []byte
	queue    int64
}

// optionSet says which options a command takes.
type optionSet uint8

const (
	optionCost optionSet = 1 << iota
	optionID
	optionZone
	optionQueue
	optionWait // for admit, which makes the call wait
)

// options takes the options, in any order and each at most once.
func (a *args) options(allowed optionSet) options {
	o := options{cost: 1}
	take := func(option optionSet, word string) bool {
		if allowed&option == 0 || !a.word(word) {
			return false
		}
		allowed &^= option
		return true
	}
	for a.more() {
		switch {
		case take(optionCost, "COST"):
			o.cost = a.amount("COST", 0)
		case take(optionID, "ID"):
			if o.id = a.next(); a.err == nil && len(o.id) == 0 {
				a.fail(errEmptyID)
			}
		case take(optionZone, "TZ"):
			o.zone = a.next()
		case take(optionQueue, "QUEUE"):
			o.queue = a.between("QUEUE", 0, limit.MaxCount-1)
		case take(optionWait, "WAIT"):
			a.wait = a.durationOr("; WAIT takes from 1ms to 10 years, and a call without it does not wait")
		default:
			a.fail(engine.ErrSyntax)
		}
	}
	return o
}

// fixedWindow makes out a window: a length of time, or a unit of the calendar in a zone.
func (a *args) fixedWindow(name, zone []byte) limit.Window {
	if a.err != nil {
		return limit.Window{}
	}
	if unit, ok := limit.ParseCalendar(name); ok {
		return limit.Calendar(unit, a.zone(zone))
	}
	ms, ok := limit.ParseDuration(name)
	if !ok {
		a.fail(invalidDuration(name, "; or minute, hour, day, week, month or year for a window of the calendar"))
	} else if zone != nil {
		a.fail(errZoneOfDuration)
	}
	return limit.Every(ms)
}

func (a *args) zone(name []byte) *time.Location {
	if name == nil {
		return time.UTC
	}
	z, ok := limit.ParseZone(name)
	if !ok {
		a.fail(engine.Error(fmt.Sprintf("ERR unknown time zone '%.128s': TZ takes an IANA name such as UTC or Europe/Berlin", name)))
		return time.UTC
	}
	return z
}
