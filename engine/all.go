package engine

import (
	"bytes"
	"fmt"

	"rlserver/engine/limit"
)

// LimitKind says which limiter a Limit is.
type LimitKind uint8

// The kinds of limit. Each names the fields of Limit it uses beside Kind and Key.
const (
	LimitSlide LimitKind = iota // Slide, ID
	LimitToken                  // Token
	LimitFixed                  // Fixed
	LimitLease                  // Lease, ID
)

// Limit is one of several limits that a call is held against: a key and the rule for it. It is one flat struct so that a list of them is
// built up without allocating.
type Limit struct {
	Kind  LimitKind
	Key   Key
	Slide limit.Rule
	Token limit.Bucket
	Fixed limit.Fixed
	Lease limit.Lease
	ID    []byte // who takes the lease; of a sliding window the name of the call's hits, nil for none
}

// part is what All found under one key, and what it is going to record there.
type part struct {
	object   object
	first    int  // the limit on this key, or the first of several sliding windows
	several  bool // there are more
	repeated bool // the id is in the window already
	trim     int  // hits of a log that have lapsed
	answer   limit.Decision
	tokens   limit.Tokens
	count    limit.Count
}

// All decides a call of cost hits against one or more limits of any kinds: all admit it and it is recorded in each, or nothing changes.
// A lease is one lease whatever the cost; a cost of 0 is a peek at all. Rule, Limit and Remaining speak of one limit: of a denied call, the
// one that must be waited for longest; of an admitted one, the one with the least remaining; among equals, the first. RetryAfter is when all
// admit, ResetAfter when all are as if they had never been used.
//
// Sliding windows with the same key share its log, as in Slide, and the call is recorded there once, with the first one's id. To have
// any other two limits with the same key is an error. So is a cost above MaxHits for all sliding windows' keys together, if they
// could ever admit it: ErrManyHits.
func (tx *Tx) All(limits []Limit, cost int64) (limit.Decision, error) {
	if err := tx.findParts(limits); err != nil {
		return limit.Decision{}, err
	}
	answer, err := tx.decideParts(limits, cost)
	if err != nil {
		return limit.Decision{}, err
	}
	for i := range tx.parts {
		p := &tx.parts[i]
		o, k := p.object, limits[p.first].Key
		switch {
		case answer.Allowed && cost > 0:
			tx.noted(k, tx.recordPart(limits, p, cost), o == nil, cost, p.answer)
		case !p.answer.Allowed:
			tx.noted(k, o, false, cost, p.answer)
		}
	}
	return answer, nil
}

// findParts looks at the keys, and refuses what does not fit.
func (tx *Tx) findParts(limits []Limit) error {
	tx.parts = tx.parts[:0]
	for i := range limits {
		l := &limits[i]
		if p := tx.partOf(limits, l.Key); p != nil {
			if l.Kind != LimitSlide || limits[p.first].Kind != LimitSlide {
				return Error(fmt.Sprintf("ERR key '%.128s' is in more than one rule: only those of SLIDE may share a key", l.Key.Name))
			}
			p.several = true
			continue
		}
		o := tx.lookup(l.Key)
		if !l.fits(o) {
			return ErrWrongType
		}
		tx.parts = append(tx.parts, part{object: o, first: i})
	}
	return nil
}

func (tx *Tx) partOf(limits []Limit, k Key) *part {
	for i := range tx.parts {
		if limits[tx.parts[i].first].Key.is(k) {
			return &tx.parts[i]
		}
	}
	return nil
}

func (k Key) is(other Key) bool { return k.hash == other.hash && bytes.Equal(k.Name, other.Name) }

func (l *Limit) fits(o object) bool {
	switch l.Kind {
	case LimitToken:
		return missingOr[*tokenObject](o)
	case LimitFixed:
		return missingOr[*fixedObject](o)
	}
	return missingOr[*zsetObject](o)
}

// decideParts asks each limit, and makes one answer of theirs.
func (tx *Tx) decideParts(limits []Limit, cost int64) (answer limit.Decision, err error) {
	logs := int64(0)
	for i := range tx.parts {
		p := &tx.parts[i]
		if err := tx.decidePart(limits, p, cost); err != nil {
			return limit.Decision{}, err
		}
		if limits[p.first].Kind == LimitSlide && !p.repeated {
			logs++
		}
		if i == 0 {
			answer = p.answer
		} else {
			answer = answer.And(p.answer)
		}
	}
	switch {
	case answer.RetryAfter != limit.Never && logs > 0 && cost > MaxHits/logs:
		return limit.Decision{}, ErrManyHits
	case answer.Allowed && cost > 0:
		return answer, nil
	}
	return tx.leaving(limits, answer, cost), nil
}

// decidePart decides for one key. What it finds out is for the case that the call is recorded.
func (tx *Tx) decidePart(limits []Limit, p *part, cost int64) error {
	l := &limits[p.first]
	switch l.Kind {
	case LimitSlide:
		rules := tx.rulesOf(limits, p)
		p.answer, p.repeated = tx.decideSlide(p.object, rules, cost, l.ID)
		p.trim = tx.lapsed(rules)
		if !p.answer.Allowed {
			p.answer = tx.slideUntilGone(p.object, rules, cost, p.answer)
		}
	case LimitToken:
		t, _ := p.object.(*tokenObject)
		p.tokens, p.answer = l.Token.Take(t.tokens(), tx.now, cost)
	case LimitFixed:
		c, _ := p.object.(*fixedObject)
		var ok bool
		if p.count, p.answer, ok = l.Fixed.Take(c.count(), tx.now, cost); !ok {
			return otherWindow(l.Key, c)
		}
	case LimitLease:
		p.answer = tx.decideLease(p.object, l.Lease, l.ID, cost)
	}
	p.answer.Rule = p.limitAt(limits, p.answer.Rule)
	if !p.answer.Allowed || cost == 0 || p.repeated {
		p.answer = tx.untilGone(p.object, p.answer)
	}
	return nil
}

// rulesOf lists the windows over one log.
func (tx *Tx) rulesOf(limits []Limit, p *part) []limit.Rule {
	tx.rules = append(tx.rules[:0], limits[p.first].Slide)
	if p.several {
		for i := p.first + 1; i < len(limits); i++ {
			if limits[i].Key.is(limits[p.first].Key) {
				tx.rules = append(tx.rules, limits[i].Slide)
			}
		}
	}
	return tx.rules
}

// limitAt is the index among all limits of the n-th over one log.
func (p *part) limitAt(limits []Limit, n int) int {
	i := p.first
	for ; n > 0; n-- {
		for i++; !limits[i].Key.is(limits[p.first].Key); i++ {
		}
	}
	return i
}

// leaving makes the answer one of a call that is not recorded: what some would have admitted does not put off when they are unused, and
// some that admit now may not admit at the time when the others do.
func (tx *Tx) leaving(limits []Limit, answer limit.Decision, cost int64) limit.Decision {
	answer.ResetAfter = 0
	for i := range tx.parts {
		p := &tx.parts[i]
		reset := p.answer.ResetAfter
		if p.answer.Allowed && cost > 0 && !p.repeated {
			asIs := part{object: p.object, first: p.first, several: p.several}
			_ = tx.decidePart(limits, &asIs, 0) // it has no error: the call had none
			reset = asIs.answer.ResetAfter
		}
		answer.ResetAfter = max(answer.ResetAfter, reset)
	}
	if answer.RetryAfter > 0 && len(tx.parts) > 1 {
		answer.RetryAfter = tx.allAdmit(limits, after(tx.now, answer.RetryAfter), cost) - tx.now
	}
	return answer
}

// allAdmit is the earliest moment at which all admit, from t on, by when each has done so at some time.
func (tx *Tx) allAdmit(limits []Limit, t, cost int64) int64 {
	budget := limit.MaxSteps
	for agreed := 0; agreed < len(tx.parts); {
		agreed = 0
		for i := range tx.parts {
			next := tx.admitsFrom(limits, &tx.parts[i], t, cost, &budget)
			if next == t {
				agreed++
			}
			t = next
		}
	}
	return t
}

// admitsFrom is the earliest moment, from t on, at which the limits of one key admit. Buckets, fixed windows and logs without a future
// go on to admit; a key that is gone admits too.
func (tx *Tx) admitsFrom(limits []Limit, p *part, t, cost int64, budget *int) int64 {
	l, next := &limits[p.first], t
	tx.log = logIn(p.object)
	switch {
	case l.Kind == LimitLease:
		next = l.Lease.AdmitsFrom(&tx.log, tx.log.rank(l.ID), t)
	case l.Kind == LimitSlide && !p.repeated && tx.log.After(float64(tx.now)) < tx.log.Len():
		next = limit.AdmitsFrom(tx.rulesOf(limits, p), &tx.log, t, cost, budget)
	}
	return min(next, max(t, goneAt(p.object)))
}

func (tx *Tx) recordPart(limits []Limit, p *part, cost int64) object {
	l := &limits[p.first]
	expireAt := after(tx.now, p.answer.ResetAfter)
	switch {
	case p.repeated:
	case l.Kind == LimitSlide:
		return tx.recordSlide(l.Key, p.object, l.ID, p.trim, cost, expireAt)
	case l.Kind == LimitToken:
		return tx.putTokens(l.Key, p.object, p.tokens, expireAt)
	case l.Kind == LimitFixed:
		return tx.putCount(l.Key, p.object, p.count, expireAt)
	case l.Kind == LimitLease:
		return tx.recordLease(l.Key, p.object, l.Lease, l.ID, expireAt)
	}
	return p.object
}
