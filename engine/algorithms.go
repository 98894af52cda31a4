package engine

import (
	"rlserver/engine/limit"
	"rlserver/engine/rule"
)

// algorithm is one of those that package rule has the words for: what its keys hold, and what it
// does. Everything that decides goes by it, be it one limit (Decide), several (All) or policies
// (Check).
type algorithm struct {
	holds Type
	id    idUse

	// allows is how much a limit allows.
	allows func(*Limit) int64

	// decide decides for one key, of which it looks at the object. It sets the answer, and what
	// record needs.
	decide func(tx *Tx, p *part, cost int64) error

	// record records an admitted call; nil: decide has set the part's effect to the state after it.
	record func(tx *Tx, p *part, cost, expireAt int64) object

	// admitsFrom is the earliest moment, from t on, at which a call is admitted that was denied;
	// tx.log is that of the key, and tx.budget for steps. nil: once the limit would admit the call,
	// it goes on to do so for as long as nothing else happens.
	admitsFrom func(tx *Tx, p *part, t, cost int64) int64

	// succeeds tells whether a limit can go on with what another one of the same algorithm has
	// left; nil: any can.
	succeeds func(o object, l *Limit, now int64) bool
}

// algorithms are all there are.
var algorithms = [...]*algorithm{
	rule.Slide: &slide,
	rule.Token: &token,
	rule.Fixed: &fixed,
	rule.Lease: &lease,
	rule.Leaky: &leaky,

	rule.Counter: &slidingCounter,
}

// idUse is what the id of a limit does.
type idUse uint8

const (
	noID       idUse = iota
	namesHits        // it names the call's hits in a log, and is not recorded again while they are there; nil for none
	namesLease       // it is that of the lease, and has to be there
)

func (l *Limit) algorithm() *algorithm { return algorithms[l.Kind] }

func (a *algorithm) fits(o object) bool { return o == nil || o.kind() == a.holds }

// putNumbers makes the effect the one that sets the state of a type which has these numbers. at is
// the time that is in it, Unix ms. ok is false if there is no such type.
func (f *Effect) putNumbers(t Type, n [4]int64) (at int64, ok bool) {
	switch t {
	case TypeToken:
		f.putTokens(limit.Tokens{Missing: n[0], Fraction: uint64(n[1]), Since: n[2], Earned: n[3]})
		return n[2], true
	case TypeFixed:
		f.putCount(limit.Count{Start: n[0], Length: n[1], Used: n[2]})
		return n[0], true
	case TypeCounter:
		f.putCounts(limit.Counts{Start: n[0], Length: n[1], Current: n[2], Previous: n[3]})
		return n[0], true
	}
	return 0, false
}

// fitsState tells whether the effect can set the state of an object, nil for a missing key. ok is
// false if it is of no such kind.
func (f *Effect) fitsState(o object) (fits, ok bool) {
	switch f.Kind {
	case EffectTokens, EffectBucket:
		t := f.Tokens
		return missingOr[*tokenObject](o) && isCount(t.Missing) && isDuration(t.Earned), true
	case EffectCount, EffectWindow:
		c := f.Count
		return missingOr[*fixedObject](o) && isCount(c.Used) && isDuration(c.Length), true
	case EffectCounter:
		return missingOr[*counterObject](o) && f.fitsCounter(), true
	}
	return false, false
}

func isCount(n int64) bool     { return 0 <= n && n <= limit.MaxCount }
func isDuration(ms int64) bool { return 0 <= ms && ms <= limit.MaxDuration }

// applyState sets the state of an object that the effect fits.
func (e *Engine) applyState(o object, f *Effect) (after object, ok bool) {
	switch f.Kind {
	case EffectTokens, EffectBucket:
		t := holding(e, o, f, newToken)
		t.setTokens(f.Tokens)
		after = t
	case EffectCount, EffectWindow:
		c := holding(e, o, f, newFixed)
		c.setCount(f.Count)
		after = c
	case EffectCounter:
		c := holding(e, o, f, newCounter)
		c.setCounts(f.Counts)
		after = c
	default:
		return nil, false
	}
	e.shardOf(f.Key).setDeadline(f.DB, f.Key.hash, after, f.ExpireAt)
	return after, true
}
