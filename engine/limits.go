package engine

import (
	"math"

	"rlserver/engine/ban"
	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/reserve"
	"rlserver/engine/rule"
)

// as returns an object as the type T that an operation requires: nil for a missing key,
// ErrWrongType for another type.
func as[T object.Object](o object.Object) (t T, err error) {
	t, ok := o.(T)
	if !ok && o != nil {
		return t, ErrWrongType
	}
	return t, nil
}

// Decide decides a call against one limit: it admits the call, which is recorded, or nothing
// changes. A missing key is an unused limiter. A cost of 0 is a peek. It returns an error if the
// key holds another type, and if the window cannot be counted (see limit.Fixed).
func (tx *Tx) Decide(l *Limit) (limit.Decision, error) {
	if l.Ban != nil {
		return tx.decideBanning([]Limit{*l})
	}
	a := l.algorithm()
	o := tx.lookupFor(a, l.Key)
	if !a.fits(o) {
		return limit.Decision{}, ErrWrongType
	}
	if len(tx.parts) > 1 { // otherwise the part of an earlier call is overwritten
		tx.dropParts()
	}
	tx.parts, tx.limits = tx.parts[:0], nil
	p := tx.addPart(l, 0, o)
	if err := tx.decideWithBook(p); err != nil {
		return limit.Decision{}, err
	}
	d, fresh := &p.answer, false
	switch {
	case !d.Allowed || p.cost == 0 || p.repeated && p.renewed == 0:
		tx.endWithKey(d, p.object)
	default:
		fresh = o == nil
		o = tx.recordPart(p)
	}
	tx.note(l.Key, &l.Rule, o, fresh, p.cost, d, false)
	return *d, nil
}

// endWithKey corrects an answer for a key that expires before its limiter is free: after a call
// with a shorter rule, or EXPIRE, has set the deadline.
func (tx *Tx) endWithKey(d *limit.Decision, o object.Object) {
	at := goneAt(o)
	if at == math.MaxInt64 {
		return
	}
	d.ResetAfter = min(d.ResetAfter, at-tx.now)
	if d.RetryAfter > 0 {
		d.RetryAfter = min(d.RetryAfter, at-tx.now)
	}
}

// goneAt returns when a key expires; math.MaxInt64 if it does not, or is missing.
func goneAt(o object.Object) int64 {
	if o == nil || o.Deadline() == 0 || o.Deadline() == math.MaxInt64 {
		return math.MaxInt64
	}
	return o.Deadline() + 1
}

// Limit is a key, its rule and what a call asks of it. It is one flat struct so that a list of
// limits is built without allocating.
type Limit struct {
	Key Key
	rule.Rule
	Cost int64  // hits, 0 to limit.MaxCount; a call takes one lease whatever its cost
	ID   []byte // its meaning depends on the algorithm, see idUse
	// with a TTL the cost is reserved, rather than recorded; leases are taken as without
	Hold reserve.Request
	Ban  *ban.Rule // whom the limit bans; nil: nobody. All does not count denials
}

// part is the part of a decision that concerns one key: what it has found there and will record.
type part struct {
	limit   *Limit // on this key, or the first of several sliding windows
	first   int    // its index
	several bool   // there are more windows
	drop    bool   // what another definition has left under the key goes when the call is recorded
	asks    bool   // the limit may deny the call
	object  object.Object
	book    *reserve.Book
	ban     *ban.State
	verdict
	trim   int           // lapsed hits of the log, to be dropped
	effect effect.Effect // of a limiter without a log: Kind and the state after the call
}

// verdict is the answer of a part to a cost, and why.
type verdict struct {
	cost     int64 // of the call
	answer   limit.Decision
	repeated bool  // the id is in the window already, or the call in the book
	renewed  int64 // the amount of the open reservation that the call renews; 0: none
	known    int64 // until when the call is in the book, Unix ms; 0: it is not
}

// addPart adds a part, and reuses the memory of an earlier call.
func (tx *Tx) addPart(l *Limit, i int, o object.Object) *part {
	n := len(tx.parts)
	if n == cap(tx.parts) {
		tx.parts = append(tx.parts, part{})
	}
	tx.parts = tx.parts[:n+1]
	p := &tx.parts[n]
	// decide sets the answer and the effect. They are large: clearing them first would slow each
	// decision down measurably.
	p.limit, p.first, p.several, p.drop, p.object, p.repeated, p.trim = l, i, false, false, o, false, 0
	x := object.ExtensionOf(o)
	p.cost, p.asks, p.book, p.ban = l.Cost, true, x.Reservations(), x.Bans()
	p.renewed, p.known = 0, 0
	return p
}

// dropParts drops the parts of an earlier call.
func (tx *Tx) dropParts() {
	for i := range tx.parts {
		p := &tx.parts[i]
		p.limit, p.object, p.book, p.ban, p.effect.Key = nil, nil, nil, nil, Key{}
	}
	tx.parts, tx.limits = tx.parts[:0], nil
}

// All decides a call against one or more limits of any kind. If all admit it, it is recorded in
// each, otherwise nothing changes. A call of which all costs are 0 is a peek. In any other, a limit
// with a cost of 0 records nothing and does not deny.
//
// Index, Limit and Remaining are about one limit: for a denied call the one with the longest wait,
// for an admitted call the one with the least remaining, the first if several are equal. RetryAfter
// is until all admit, ResetAfter until all are unused.
//
// Sliding windows with the same key share its log, as in Slide, and the call is recorded there
// once, with the id of the first: their costs must be equal. Other limits must not share a key.
func (tx *Tx) All(limits []Limit) (limit.Decision, error) {
	return tx.all(limits, manner{peek: !asks(limits)})
}

// asks reports whether a call with these limits has a cost: otherwise it is a peek.
func asks(limits []Limit) bool {
	for i := range limits {
		if limits[i].Cost > 0 {
			return true
		}
	}
	return false
}

// all is All for a call of a manner.
func (tx *Tx) all(limits []Limit, m manner) (limit.Decision, error) {
	if err := tx.findParts(limits, m.peek); err != nil {
		return limit.Decision{}, err
	}
	answer, err := tx.decideParts()
	if err != nil || m.charge && !answer.Allowed {
		return answer, err
	}
	for i := range tx.parts {
		p := &tx.parts[i]
		o, k, by := p.object, p.limit.Key, &limits[p.answer.Index].Rule
		switch {
		case answer.Allowed && p.cost > 0:
			tx.note(k, by, tx.recordPart(p), o == nil, p.cost, &p.answer, m.shadow)
		case !p.answer.Allowed:
			tx.note(k, by, o, false, p.cost, &p.answer, m.shadow)
		}
	}
	return answer, nil
}

// findParts looks up the keys, and returns an error for limits that do not fit them.
func (tx *Tx) findParts(limits []Limit, peek bool) error {
	tx.dropParts()
	tx.limits = limits
	for i := range limits {
		l := &limits[i]
		a := l.algorithm()
		if p := tx.partOf(l.Key); p != nil {
			if a.id != namesHits || p.limit.algorithm() != a {
				const format = "ERR key '%.128s' is in more than one rule: only those of SLIDE may share a key"
				return Errorf(format, l.Key.Name)
			}
			if p.cost != l.Cost {
				const format = "ERR the rules of key '%.128s' share its log: COST must be the same for each of them"
				return Errorf(format, l.Key.Name)
			}
			p.several = true
			continue
		}
		o := tx.lookupFor(a, l.Key)
		drop := !a.fits(o) || a.id == namesHits && tx.leased(o)
		if drop {
			o = tx.former(o)
		}
		if !a.fits(o) {
			return ErrWrongType
		}
		p := tx.addPart(l, i, o)
		p.asks, p.drop = l.Cost > 0 || peek, drop
	}
	return nil
}

func (tx *Tx) partOf(k Key) *part {
	for i := range tx.parts {
		if tx.parts[i].limit.Key.Is(k) {
			return &tx.parts[i]
		}
	}
	return nil
}

// decideParts decides for each limit, and combines the answers.
func (tx *Tx) decideParts() (answer limit.Decision, err error) {
	peek := true
	for i := range tx.parts {
		p := &tx.parts[i]
		if err := tx.decidePart(p); err != nil {
			return limit.Decision{}, err
		}
		peek = peek && p.cost == 0
		if i == 0 {
			answer = p.answer
		} else {
			answer = answer.And(p.answer)
		}
	}
	if answer.Allowed && !peek {
		return answer, nil
	}
	return tx.leaving(answer), nil
}

// decidePart decides for one key, and prepares what recordPart needs.
func (tx *Tx) decidePart(p *part) error {
	if err := tx.decideWithBook(p); err != nil {
		return err
	}
	p.answer.Index = tx.limitAt(p, p.answer.Index)
	if p.limit.Ban != nil && p.ban != nil {
		p.answer = ban.Answer(p.answer, p.ban.Left(tx.now))
	}
	if !p.answer.Allowed || p.cost == 0 || p.repeated && p.renewed == 0 {
		tx.endWithKey(&p.answer, p.object)
	}
	if !p.asks {
		p.answer.Allowed, p.answer.RetryAfter, p.answer.Free = true, 0, true
	}
	return nil
}

// rulesOf returns the windows over one log.
func (tx *Tx) rulesOf(p *part) []limit.Window {
	tx.rules = append(tx.rules[:0], p.limit.Slide)
	if p.several {
		for i := p.first + 1; i < len(tx.limits); i++ {
			if tx.limits[i].Key.Is(p.limit.Key) {
				tx.rules = append(tx.rules, tx.limits[i].Slide)
			}
		}
	}
	return tx.rules
}

// limitAt returns the index, among all limits, of the n-th limit over one log.
func (tx *Tx) limitAt(p *part, n int) int {
	i := p.first
	for ; n > 0; n-- {
		for i++; !tx.limits[i].Key.Is(p.limit.Key); i++ {
		}
	}
	return i
}

// leaving corrects the answer for a call that is not recorded: a limit that would have admitted it
// becomes unused earlier, and may no longer admit it when the others do.
func (tx *Tx) leaving(answer limit.Decision) limit.Decision {
	answer.ResetAfter = 0
	for i := range tx.parts {
		p := &tx.parts[i]
		reset := p.answer.ResetAfter
		banned := p.limit.Ban != nil && p.ban.Left(tx.now) > 0
		if (p.answer.Allowed || banned) && p.cost > 0 && (!p.repeated || p.renewed > 0) {
			admits := p.verdict
			p.cost = 0
			_ = tx.decidePart(p) // it has no error: the call had none
			reset = p.answer.ResetAfter
			p.verdict = admits
		}
		answer.ResetAfter = max(answer.ResetAfter, reset)
	}
	if answer.RetryAfter > 0 && len(tx.parts) > 1 {
		if answer.RetryAfter = tx.allAdmit(limit.After(tx.now, answer.RetryAfter)); answer.RetryAfter != limit.Never {
			answer.RetryAfter -= tx.now
		}
	}
	return answer
}

// allAdmit returns the earliest time, from t on, at which all admit; limit.Never if there is none.
// Each admits at some time up to t.
func (tx *Tx) allAdmit(t int64) int64 {
	tx.budget = limit.MaxSteps
	for agreed := 0; agreed < len(tx.parts); {
		agreed = 0
		for i := range tx.parts {
			next := tx.admitsFrom(&tx.parts[i], t)
			switch next {
			case limit.Never:
				return next
			case t:
				agreed++
			}
			t = next
		}
	}
	return t
}

// admitsFrom returns the earliest time, from t on, at which the limits of one key admit. An expired
// key admits.
func (tx *Tx) admitsFrom(p *part, t int64) int64 {
	a := p.limit.algorithm()
	if p.limit.Ban != nil && p.ban != nil && p.asks {
		t = max(t, min(p.ban.Until, goneAt(p.object)))
	}
	if p.known > 0 && p.asks {
		return tx.recallsFrom(p, t)
	}
	if a.admitsFrom == nil || !p.asks {
		return t
	}
	tx.log.Load(p.object, &tx.few)
	return min(a.admitsFrom(tx, p, t), max(t, goneAt(p.object)))
}

// recordPart records an admitted call. It returns the key's object afterwards.
func (tx *Tx) recordPart(p *part) object.Object {
	tx.dropFormer(p)
	if p.limit.Hold.TTL > 0 && p.limit.algorithm().alone != nil {
		return tx.reserve(p)
	}
	if p.repeated {
		return p.object
	}
	expireAt := limit.After(tx.now, p.answer.ResetAfter)
	if p.book != nil || p.ban != nil {
		expireAt = tx.withBook(p, expireAt)
	}
	return tx.recordUntil(p, expireAt)
}

// dropFormer deletes what another definition of a policy has left under the key.
func (tx *Tx) dropFormer(p *part) {
	if p.drop {
		if o := tx.find(tx.db, p.limit.Key); o != nil {
			tx.delete(p.limit.Key, o)
		}
		p.drop = false
	}
}

// recordUntil records a call, and sets the deadline of the key, Unix ms.
func (tx *Tx) recordUntil(p *part, expireAt int64) object.Object {
	if record := p.limit.algorithm().record; record != nil {
		return record(tx, p, expireAt)
	}
	p.effect.Key, p.effect.ExpireAt = p.limit.Key, expireAt
	return tx.apply(p.object, &p.effect)
}
