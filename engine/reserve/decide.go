package reserve

import "rlserver/engine/limit"

// Limiter is one or more rules over the state of a key, without its reservations.
type Limiter interface {
	// Rules returns how many rules there are.
	Rules() int
	// Alone decides a call of cost by a rule as if it came at a time, Unix ms, with a limit smaller
	// by held; Limit is the limit itself. It changes nothing.
	Alone(rule int, at, held, cost int64) limit.Decision
	// Admits returns the earliest time, from t on, at which rules with limits smaller by held admit
	// a call of cost; limit.Never if they never do. rule is one of them; -1: all.
	//
	// ok is false if a rule that admits a call continues to admit it, as long as nothing else
	// happens: then it is not needed.
	Admits(rule int, t, held, cost int64) (at int64, ok bool)
}

// mostHeld is how much of a limit counts as held: more than any limit.
const mostHeld = 2 * limit.MaxCount

func (b *Book) held(at int64) int64 { return max(min(b.Held(at), mostHeld), 0) }

// Call is a call to be decided.
type Call struct {
	Now  int64 // Unix ms
	Cost int64
	Free bool // it is admitted in any case: what it takes it has already
	// the call whose reservation it renews: its time does not count for ResetAfter
	Renews []byte
}

// Decide decides a call for a key with a book. The answer is as that of limit.DecideAll. With hits
// in the future, as with more than limit.MaxSteps of them there, RetryAfter may be too late.
func (b *Book) Decide(l Limiter, c Call) (answer limit.Decision) {
	if c.Free {
		c.Cost = 0
	}
	held := b.held(c.Now)
	for i := range l.Rules() {
		d := l.Alone(i, c.Now, held, c.Cost)
		switch {
		case c.Free:
			d.Allowed, d.RetryAfter, d.Free = true, 0, true
		case max(c.Cost, 1) > d.Limit:
			d.RetryAfter = limit.Never
		case !d.Allowed:
			d.RetryAfter = b.wait(l, i, c.Now, held, c.Cost)
		}
		answer = answer.Next(d, i)
	}
	if answer.RetryAfter > 0 && l.Rules() > 1 {
		at := b.AdmitsFrom(l, -1, limit.After(c.Now, answer.RetryAfter), c.Cost)
		answer.RetryAfter = until(at, c.Now)
	}
	if !answer.Allowed && l.Rules() > 1 { // those that would admit it alone are not used
		answer.ResetAfter = 0
		for i := range l.Rules() {
			answer.ResetAfter = max(answer.ResetAfter, l.Alone(i, c.Now, held, 0).ResetAfter)
		}
	}
	answer.ResetAfter = max(answer.ResetAfter, until(b.lastBut(c.Renews), c.Now))
	return answer
}

// lastBut returns when the last reservation but that of a call is over, Unix ms; 0 if there is
// none.
func (b *Book) lastBut(call []byte) (at int64) {
	if b.Len() == 0 {
		return 0
	}
	before, x := b.last(b.root)
	if call != nil && string(b.call(x)) == string(call) {
		if left := b.at(x).left; left != 0 {
			_, before = b.last(left)
		}
		if x = before; x == 0 {
			return 0
		}
	}
	return b.at(x).until
}

// wait returns for how long a rule denies a call that is not above its limit. What is used and what
// is held only fall: there is a first lapse from which on the call is admitted, and before it
// nothing lapses, so the call is admitted then or when the rule alone would admit it with what is
// held until then.
func (b *Book) wait(l Limiter, rule int, now, held, cost int64) int64 {
	if _, jumps := l.Admits(rule, now, held, cost); jumps {
		return until(b.AdmitsFrom(l, rule, now, cost), now)
	}
	at, lapses := b.Lapse(now, func(at, held int64) bool {
		return l.Alone(rule, at, min(held, mostHeld), cost).Allowed
	})
	before := int64(0)
	if lapses {
		before = b.held(at - 1)
	}
	d := l.Alone(rule, now, before, cost)
	if d.RetryAfter != limit.Never && (!lapses || d.RetryAfter < at-now) {
		return d.RetryAfter
	}
	return at - now
}

// AdmitsFrom returns the earliest time, from t on, at which rules, all for -1, admit a call. It
// takes a step for each lapse that makes them deny or admit it, up to limit.MaxSteps.
func (b *Book) AdmitsFrom(l Limiter, rule int, t, cost int64) int64 {
	any := func(int64, int64) bool { return true }
	for range limit.MaxSteps {
		at, jumps := l.Admits(rule, t, b.held(t), cost)
		if !jumps || at == t {
			return t
		}
		if lapse, ok := b.Lapse(t, any); ok && (at == limit.Never || lapse < at) {
			at = lapse
		}
		t = at
	}
	if last, ok := b.Last(); ok {
		t = max(t, last)
	}
	at, _ := l.Admits(rule, t, 0, cost)
	return max(at, t)
}

// until returns how long it is from now until t.
func until(t, now int64) int64 { return max(t-now, 0) }

// Settled is what settling a call has done for a key.
type Settled struct {
	First     bool  // the call was not settled before
	Reserved  int64 // 0 if it had lapsed, or reserved nothing
	Remaining int64 // as in a Decision
}
