package engine

import (
	"math"

	"rlserver/engine/limit"
)

// as gives an object as the type an operation works on: nil for a missing key, ErrWrongType for any
// other type.
func as[T object](o object) (t T, err error) {
	if o == nil {
		return t, nil
	}
	t, ok := o.(T)
	if !ok {
		return t, ErrWrongType
	}
	return t, nil
}

// Decide decides a call of cost hits against one limit: it admits the call, which is recorded, or
// nothing changes. A missing key is an unused limiter. A cost of 0 is a peek. The error is of a key
// that holds something else, of a window that cannot be counted, see limit.Fixed, or
// ErrTooManyHits.
func (tx *Tx) Decide(l *Limit, cost int64) (limit.Decision, error) {
	o := tx.lookup(l.Key)
	a := l.algorithm()
	if !a.fits(o) {
		return limit.Decision{}, ErrWrongType
	}
	tx.dropParts()
	p := tx.addPart(l, 0, o)
	if err := a.decide(tx, p, cost); err != nil {
		return limit.Decision{}, err
	}
	d := p.answer
	switch {
	case a.id == namesHits && cost > MaxHits && d.RetryAfter != limit.Never && !p.repeated:
		return limit.Decision{}, ErrTooManyHits
	case !d.Allowed || cost == 0 || p.repeated:
		return tx.noted(l.Key, o, false, cost, tx.untilGone(o, d), false), nil
	}
	fresh := o == nil
	o = tx.recordPart(p, cost)
	return tx.noted(l.Key, o, fresh, cost, d, false), nil
}

// untilGone makes an answer hold for a key that expires before its limiter says it is free: a call
// under a longer rule than the one that set the deadline is told of the earlier time, and so is one
// whose key was given a deadline by hand.
func (tx *Tx) untilGone(o object, d limit.Decision) limit.Decision {
	at := goneAt(o)
	if at == math.MaxInt64 {
		return d
	}
	d.ResetAfter = min(d.ResetAfter, at-tx.now)
	if d.RetryAfter > 0 {
		d.RetryAfter = min(d.RetryAfter, at-tx.now)
	}
	return d
}

// goneAt is the first moment at which a key is there no more; math.MaxInt64 for one that stays, and
// for none.
func goneAt(o object) int64 {
	if o == nil || o.head().expireAt == 0 || o.head().expireAt == math.MaxInt64 {
		return math.MaxInt64
	}
	return o.head().expireAt + 1
}

// after is now + ms, at most the last moment that Redis' commands can speak of.
func after(now, ms int64) int64 {
	if ms > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + ms
}
