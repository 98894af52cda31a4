package limits_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A model of budgets that keeps what has happened in plain lists, and answers by looking through
// all of it: each charge for ever, each reservation, and for a time to wait each millisecond.

// modelRule is a limit on a key.
type modelRule struct {
	key    string
	kind   string // SLIDE, TOKEN, FIXED or COUNTER
	limit  int64  // or the capacity
	refill int64  // of TOKEN
	span   int64  // the window or the period, ms
}

// words are the rule as RL.ALL takes it, without its key.
func (r modelRule) words() string {
	if r.kind == "TOKEN" {
		return fmt.Sprintf("TOKEN %d %d %dms", r.limit, r.refill, r.span)
	}
	return fmt.Sprintf("%s %d %dms", r.kind, r.limit, r.span)
}

// modelCharge is use that counts from its time on.
type modelCharge struct {
	at, n int64
	id    string // of a hit, if it has one
}

// modelHold is a reservation, or what is remembered of one.
type modelHold struct {
	amount, lapse int64
	settled       bool
	at            int64 // when it was settled
}

// modelKey is a key.
type modelKey struct {
	charges []modelCharge
	holds   map[string]modelHold // by the ids of their calls
	terms   []modelRule          // of the last HOLD, or of a charge since then
}

// used is what a rule counts at a time, by its definition.
func (k *modelKey) used(r modelRule, now int64) (used int64) {
	var before int64
	for i, c := range k.charges {
		switch r.kind {
		case "SLIDE":
			if c.at > now-r.span {
				used += c.n
			}
		case "FIXED":
			if c.at/r.span == now/r.span {
				used += c.n
			}
		case "COUNTER":
			if c.at/r.span == now/r.span {
				used += c.n
			} else if c.at/r.span == now/r.span-1 {
				before += c.n
			}
		case "TOKEN": // parts of tokens that are missing, if the bucket was full before some charge
			missing := -r.refill * (now - c.at)
			for _, later := range k.charges[i:] {
				missing += later.n * r.span
			}
			used = max(used, missing)
		}
	}
	if r.kind == "TOKEN" {
		return (used + r.span - 1) / r.span
	}
	return used + (before*(r.span-now%r.span)+r.span-1)/r.span
}

// held is what is reserved at a time.
func (k *modelKey) held(now int64) (sum int64) {
	for _, h := range k.holds {
		if !h.settled && h.lapse > now {
			sum += h.amount
		}
	}
	return sum
}

// knows reports whether a call has a reservation that is open, or was settled a while ago.
func (k *modelKey) knows(call string, now int64) bool {
	h, found := k.holds[call]
	return found && (h.settled && now < h.at+modelRetention || !h.settled && now < h.lapse)
}

// modelRetention is how long a call is remembered after it was settled, ms.
const modelRetention = 600_000

func (k *modelKey) remaining(r modelRule, now int64) int64 {
	return max(0, r.limit-k.used(r, now)-k.held(now))
}

// modelCall is a decision.
type modelCall struct {
	rules []modelRule
	costs []int64 // of each rule
	hold  string  // the id of the call that reserves; "": it takes
	ttl   int64
	id    string // of the hits; "": they have none
	force bool
}

// peeks reports whether the call takes nothing.
func (c modelCall) peeks() bool { return slices.Max(c.costs) == 0 }

// cost is what a rule has to have left.
func (c modelCall) cost(rule int) int64 {
	if c.peeks() {
		return 1
	}
	return c.costs[rule]
}

// modelDecision is a reply.
type modelDecision struct {
	allowed, limit, remaining, retryAfter, resetAfter, rule int64
}

// model is all keys.
type model struct {
	keys map[string]*modelKey
	now  int64
}

func newModel(now int64) *model { return &model{make(map[string]*modelKey), now} }

func (m *model) key(name string) *modelKey {
	if m.keys[name] == nil {
		m.keys[name] = &modelKey{holds: make(map[string]modelHold)}
	}
	return m.keys[name]
}

// free reports whether a rule has nothing to say: it is not asked for anything, or it has answered
// this call before.
func (m *model) free(c modelCall, rule int) bool {
	k := m.key(c.rules[rule].key)
	return c.cost(rule) == 0 || c.hold != "" && k.knows(c.hold, m.now) || c.id != "" && m.hasHit(c)
}

// hasHit reports whether the id of a call is in the longest of its windows.
func (m *model) hasHit(c modelCall) bool {
	longest := slices.MaxFunc(c.rules, func(a, b modelRule) int { return cmp.Compare(a.span, b.span) })
	return slices.ContainsFunc(m.key(longest.key).charges, func(x modelCharge) bool {
		return x.id == c.id && x.at > m.now-longest.span
	})
}

// wait is how long a rule denies a call; -1: for ever.
func (m *model) wait(c modelCall, rule int) int64 {
	r, k := c.rules[rule], m.key(c.rules[rule].key)
	if m.free(c, rule) {
		return 0
	}
	if c.cost(rule) > r.limit {
		return -1
	}
	at := m.now
	for k.used(r, at)+k.held(at)+c.cost(rule) > r.limit {
		at++
	}
	return at - m.now
}

// longest is the longest wait of the rules, and the first that has it; -1 is longer than any other.
func (m *model) longest(c modelCall) (wait, rule int64) {
	for i := range c.rules {
		if w := m.wait(c, i); wait >= 0 && (w < 0 || w > wait) {
			wait, rule = w, int64(i)
		}
	}
	return wait, rule
}

// decide decides a call, and records it if it is admitted, or forced.
func (m *model) decide(c modelCall) (d modelDecision) {
	if d.retryAfter, d.rule = m.longest(c); d.retryAfter == 0 {
		d.allowed = 1
	}
	if (d.allowed == 1 || c.force) && !c.peeks() {
		m.record(c)
	}
	if d.allowed == 0 && c.force { // when another one would be admitted
		d.retryAfter, d.rule = m.longest(c)
	}
	if d.allowed == 1 {
		for i, r := range c.rules {
			if m.left(r) < m.left(c.rules[d.rule]) {
				d.rule = int64(i)
			}
		}
	}
	speaks := c.rules[d.rule]
	d.limit, d.remaining, d.resetAfter = speaks.limit, m.left(speaks), m.reset(c.rules)
	return d
}

func (m *model) left(r modelRule) int64 { return m.key(r.key).remaining(r, m.now) }

// reset is how long it takes until all rules are as if they had never been used.
func (m *model) reset(rules []modelRule) int64 {
	at := m.now
	for _, r := range rules {
		for k := m.key(r.key); k.used(r, at)+k.held(at) > 0; {
			at++
		}
	}
	return at - m.now
}

// record takes or reserves, once for each key.
func (m *model) record(c modelCall) {
	done := make(map[string]bool)
	for i, r := range c.rules {
		k := m.key(r.key)
		if c.hold != "" && (i == 0 || !done[r.key]) {
			k.terms = nil
		}
		if c.hold != "" {
			k.terms = append(k.terms, r)
		}
		if done[r.key] {
			continue
		}
		done[r.key] = true
		switch {
		case c.hold == "" && !m.free(c, i):
			k.charges = append(k.charges, modelCharge{m.now, c.costs[i], c.id})
		case c.hold == "" || c.costs[i] == 0:
		case !k.knows(c.hold, m.now):
			k.holds[c.hold] = modelHold{amount: c.costs[i], lapse: m.now + c.ttl}
		case !k.holds[c.hold].settled:
			k.holds[c.hold] = modelHold{amount: k.holds[c.hold].amount, lapse: m.now + c.ttl}
		}
	}
}

// charge counts what has happened anyway.
func (m *model) charge(c modelCall) modelDecision {
	c.force = true
	return m.decide(c)
}

// settle settles a call on a key whose rules are known.
func (m *model) settle(key string, rules []modelRule, actual int64, call string) string {
	k := m.key(key)
	settled, reserved := 1, int64(0)
	switch h := k.holds[call]; {
	case k.knows(call, m.now) && h.settled:
		settled = 0
	default:
		if k.knows(call, m.now) {
			reserved = h.amount
		}
		if actual > 0 {
			k.charges = append(k.charges, modelCharge{at: m.now, n: actual})
		}
		k.holds[call] = modelHold{settled: true, at: m.now}
	}
	left := k.remaining(rules[0], m.now)
	for _, r := range rules {
		left = min(left, k.remaining(r, m.now))
	}
	return fmt.Sprintf("*4 :%d :%d :%d :%d", settled, reserved, actual, left)
}

// reservations is the reply of RL.HOLDS, in the order of the ids.
func (m *model) reservations(key string) (lines []string) {
	for call, h := range m.key(key).holds {
		if !h.settled && h.lapse > m.now {
			lines = append(lines, fmt.Sprintf("*3 $%d %s :%d :%d", len(call), call, h.amount, h.lapse-m.now))
		}
	}
	slices.Sort(lines)
	return lines
}

// text is a reply of five integers, or of six.
func (d modelDecision) text(integers int) string {
	all := []int64{d.allowed, d.limit, d.remaining, d.retryAfter, d.resetAfter, d.rule}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d", integers)
	for _, n := range all[:integers] {
		fmt.Fprintf(&b, " :%d", n)
	}
	return b.String()
}
