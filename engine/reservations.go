package engine

import (
	"cmp"
	"slices"

	"rlserver/engine/ban"
	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/reserve"
	"rlserver/engine/rule"
)

// view is a part as package reserve sees it: the limits without reservations.
type view struct {
	tx   *Tx
	part *part
}

// Rules implements reserve.Limiter.
func (v *view) Rules() int {
	if v.part.limit.algorithm().id == namesHits {
		return len(v.tx.rules)
	}
	return 1
}

// Alone implements reserve.Limiter.
func (v *view) Alone(one int, at, held, cost int64) limit.Decision {
	return v.part.limit.algorithm().alone(v.tx, v.part, one, at, held, cost)
}

// Admits implements reserve.Limiter. Only a log does not continue to admit, if it has hits in the
// future or forgets the id of a repeated call.
func (v *view) Admits(one int, t, held, cost int64) (at int64, ok bool) {
	log := &v.tx.log
	if v.part.limit.algorithm().id != namesHits || !v.part.repeated && log.After(float64(v.tx.now)) == log.Len() {
		return 0, false
	}
	rules := slices.Clone(v.tx.rules)
	if one >= 0 {
		rules = rules[one : one+1]
	}
	for i := range rules {
		if rules[i].Limit -= held; rules[i].Limit < max(cost, 1) {
			return limit.Never, true
		}
	}
	return limit.AdmitsFrom(rules, log, t, cost, &v.tx.budget), true
}

// decideWithBook decides for one key. What is reserved counts against its limits.
func (tx *Tx) decideWithBook(p *part) error {
	a, h := p.limit.algorithm(), &p.limit.Hold
	switch {
	case p.book == nil && h.TTL == 0 || a.alone == nil:
		return a.decide(tx, p)
	case h.TTL > 0 && p.cost > 0:
		return tx.decideHold(p)
	}
	p.renewed, p.known = 0, 0
	if err := a.decide(tx, p); err != nil {
		return err
	}
	if p.book.Open(tx.now) > 0 {
		call := reserve.Call{Now: tx.now, Cost: p.cost, Free: p.repeated || !p.asks}
		tx.answerWithBook(p, call)
	}
	return nil
}

// decideHold decides for a key where the call reserves its cost, which changes nothing but the
// book: so the answer is that of a peek, of which the cost does not remain.
func (tx *Tx) decideHold(p *part) error {
	a, h, settings := p.limit.algorithm(), &p.limit.Hold, &tx.e.memory.Reservations
	if p.limit.Kind == rule.Leaky {
		return ErrLeakyHold
	}
	cost := p.cost
	p.cost = 0
	err := a.decide(tx, p)
	if p.cost = cost; err != nil {
		return err
	}
	own, known := settings.Recall(p.book, h.Call, tx.now)
	p.renewed, p.repeated, p.known = own.Amount, known, settings.Until(own)
	open, call := p.book.Open(tx.now), reserve.Call{Now: tx.now, Free: known}
	if p.renewed > 0 {
		call.Renews = h.Call
	}
	if open > 0 || known {
		tx.answerWithBook(p, call)
	}
	switch call.Cost = cost; {
	case known && p.renewed == 0:
		return nil
	case known:
	case p.answer.Allowed && p.answer.Remaining >= cost:
		p.answer.Remaining -= cost
		if err := settings.Allows(open, p.limit.Key.Name); err != nil {
			return err
		}
	case open > 0:
		tx.answerWithBook(p, call)
		return nil
	default:
		return a.decide(tx, p)
	}
	p.answer.ResetAfter = max(p.answer.ResetAfter, h.TTL)
	return nil
}

// answerWithBook answers a call on a part that has been decided without its book.
func (tx *Tx) answerWithBook(p *part, call reserve.Call) {
	tx.view, tx.budget = view{tx, p}, limit.MaxSteps
	d := p.book.Decide(&tx.view, call)
	d.Delay = p.answer.Delay
	p.answer = d
}

// recallsFrom is admitsFrom for a call that is in the book now: when it has lapsed or is forgotten,
// it is decided anew.
func (tx *Tx) recallsFrom(p *part, t int64) int64 {
	if t < p.known {
		return t
	}
	tx.log.Load(p.object, &tx.few)
	tx.rulesOf(p)
	tx.view = view{tx, p}
	d, gone := p.book.Decide(&tx.view, reserve.Call{Now: t, Cost: p.cost}), goneAt(p.object)
	if d.RetryAfter == limit.Never {
		return limit.Never
	}
	return min(limit.After(t, d.RetryAfter), max(t, gone))
}

// reserve records the reservation of an admitted call, and the rules that it was made by.
func (tx *Tx) reserve(p *part) object.Object {
	if p.repeated && p.renewed == 0 {
		return p.object // it is settled
	}
	hold := effect.Hold{Amount: cmp.Or(p.renewed, p.cost), Until: limit.After(tx.now, p.limit.Hold.TTL)}
	o := tx.enter(p, p.limit.Hold.Call, hold, limit.After(tx.now, p.answer.ResetAfter))
	return tx.agree(p, o, 0)
}

// agree records the rules of a part, whose limits were raised: later calls are settled by them.
func (tx *Tx) agree(p *part, o object.Object, raised int64) object.Object {
	tx.terms = append(tx.terms[:0], p.limit.Rule)
	for i := p.first + 1; p.several && i < len(tx.limits); i++ {
		if tx.limits[i].Key.Is(p.limit.Key) {
			tx.terms = append(tx.terms, tx.limits[i].Rule)
		}
	}
	for i := range tx.terms {
		*tx.terms[i].Bound() -= raised
	}
	if x := object.ExtensionOf(o); x == nil || slices.Equal(x.Terms, tx.terms) {
		return o
	}
	tx.packed = rule.AppendRules(tx.packed[:0], tx.terms)
	return tx.apply(o, &effect.Effect{Kind: effect.Terms, Key: p.limit.Key, Value: tx.packed})
}

// enter enters what a call has reserved, or that it is settled, in the book of a key that its
// limiter needs until resetAt, Unix ms.
func (tx *Tx) enter(p *part, call []byte, hold effect.Hold, resetAt int64) object.Object {
	settings := &tx.e.memory.Reservations
	return tx.apply(tx.e.unpacked(tx.db, p.limit.Key, p.object), &effect.Effect{
		Kind: effect.Reserve, Key: p.limit.Key, Field: call, Hold: hold,
		Lo: settings.Stale(p.book, tx.now), Hi: int(object.FormNamed(p.limit.algorithm().holds)),
		ExpireAt: max(resetAt, settings.Ends(p.book, hold.Until), p.ban.Needed()),
	})
}

// withBook forgets a few calls of a part that is about to be recorded, and returns the later of its
// deadline and that of the book.
func (tx *Tx) withBook(p *part, expireAt int64) int64 {
	if n := tx.e.memory.Reservations.Stale(p.book, tx.now); n > 0 {
		p.object = tx.apply(p.object, &effect.Effect{Kind: effect.Forget, Key: p.limit.Key, Lo: n})
		p.book = object.ExtensionOf(p.object).Reservations()
	}
	return tx.outlast(expireAt, p.book, p.ban)
}

// outlast returns the latest of some times, Unix ms: one, and until when a book and a ban are
// needed.
func (tx *Tx) outlast(at int64, b *reserve.Book, s *ban.State) int64 {
	at = max(at, s.Needed())
	if b.Len() == 0 {
		return at
	}
	return max(at, tx.e.memory.Reservations.Ends(b, 0))
}

// SlideAs is Slide for a call that has all fields of a limit but the rule.
func (tx *Tx) SlideAs(l Limit, rules []limit.Window) (limit.Decision, error) {
	limits := make([]Limit, len(rules))
	for i, w := range rules {
		limits[i] = l
		limits[i].Rule = rule.Rule{Kind: rule.Slide, Slide: w}
	}
	return tx.decideBanning(limits)
}

// Settle makes the reservations of a call final, for several keys, all of them or none: what is
// reserved comes back, and actual hits are charged to each key, beyond the limit too, by the rules
// of the latest call that has reserved something there. A call that was settled before is not
// charged again. The keys must differ. The result is valid until the next change or End.
func (tx *Tx) Settle(keys []Key, actual []int64, call []byte) ([]reserve.Settled, error) {
	c := &tx.check
	defer c.reset()
	c.reset()
	for i, k := range keys {
		if slices.ContainsFunc(keys[:i], k.Is) {
			return nil, Errorf("ERR key '%.128s' is named twice", k.Name)
		}
		x, err := tx.extension(k)
		if err != nil {
			return nil, err
		}
		if x == nil || len(x.Terms) == 0 {
			const format = "ERR key '%.128s' has no reservations, so its rule is not known: use RL.CHARGE key rule n"
			return nil, Errorf(format, k.Name)
		}
		for _, r := range x.Terms {
			c.limits = append(c.limits, Limit{Key: k, Rule: r, Cost: actual[i]})
		}
	}
	c.binding = len(c.limits)
	return tx.settle(call)
}

// SettleChecked is Settle for a call of Check, with its ID: the policies are those of now. One in
// SHADOW that has admitted nothing is not charged.
func (tx *Tx) SettleChecked(call CheckCall) ([]reserve.Settled, error) {
	call.TTL = 1 // the ID is not that of hits
	if err := tx.findPolicies(&call); err != nil {
		return nil, err
	}
	c := &tx.check
	c.running = true
	defer func() { c.running = false }()
	for i := range c.limits {
		if c.limits[i].algorithm().alone == nil {
			const format = "ERR policy '%s' is of leases, which reserve nothing: use RL.RELEASE"
			return nil, Errorf(format, c.policies[c.rules[i]].Name())
		}
		c.limits[i].Hold = reserve.Request{}
	}
	return tx.settle(call.ID)
}

// settle settles a call for the keys of the limits of tx.check, whose costs are what it has used.
func (tx *Tx) settle(call []byte) ([]reserve.Settled, error) {
	c, settings := &tx.check, &tx.e.memory.Reservations
	for i := range c.limits {
		*c.limits[i].Bound() += limit.MaxCount // a charge is always admitted
	}
	if err := tx.findParts(c.limits, true); err != nil {
		return nil, err
	}
	full := tx.e.CrowdedBy(-tx.e.Budget() / reserve.SettleShare)
	for i := range tx.parts {
		p := &tx.parts[i]
		own, _ := settings.Recall(p.book, call, tx.now)
		p.renewed, p.known = own.Amount, settings.Until(own)
		if full && p.first < c.binding && !p.book.Has(call) {
			return nil, ErrOutOfMemory
		}
		if err := tx.charge(p); err != nil {
			return nil, err
		}
	}
	tx.settled = append(tx.settled[:0], make([]reserve.Settled, len(tx.parts))...)
	for i := range tx.parts {
		p, at := &tx.parts[i], i
		if len(c.rules) > 0 {
			at = c.rules[i]
		}
		s := reserve.Settled{First: p.known == 0 || p.renewed > 0, Reserved: p.renewed}
		if s.First && (p.first < c.binding || p.known > 0) {
			tx.settlePart(p, call)
		} else {
			p.cost = 0
			_ = tx.charge(p) // it has no error: the charge had none
		}
		s.Remaining = max(p.answer.Remaining-limit.MaxCount-p.book.Held(tx.now), 0)
		tx.settled[at] = s
	}
	return tx.settled, nil
}

// charge decides a part without its book. The cost is at most what the state can count.
func (tx *Tx) charge(p *part) error {
	a, cost := p.limit.algorithm(), p.cost
	if err := a.decide(tx, p); err != nil {
		return err
	}
	if a.id == namesHits {
		p.cost = min(cost, limit.MaxCount-int64(tx.log.Len()))
	} else if counted := p.answer.Limit - limit.MaxCount; !p.answer.Allowed || p.answer.Remaining < counted {
		p.cost = 0
		_ = a.decide(tx, p) // it has no error: the call had none
		p.cost = max(min(cost, p.answer.Remaining-counted), 0)
	}
	if p.cost == cost {
		return nil
	}
	return a.decide(tx, p)
}

// settlePart records what a call has used, and that it is settled.
func (tx *Tx) settlePart(p *part, call []byte) {
	tx.dropFormer(p)
	resetAt := limit.After(tx.now, p.answer.ResetAfter)
	if p.cost > 0 {
		p.object = tx.recordUntil(p, tx.outlast(resetAt, p.book, p.ban))
	}
	p.object = tx.enter(p, call, effect.Hold{Until: tx.now}, resetAt)
	if x := object.ExtensionOf(p.object); x != nil && len(x.Terms) == 0 {
		p.object = tx.agree(p, p.object, limit.MaxCount)
	}
	p.book = object.ExtensionOf(p.object).Reservations()
	d := limit.Decision{Allowed: true, Limit: p.answer.Limit - limit.MaxCount}
	d.Remaining = max(p.answer.Remaining-limit.MaxCount, 0)
	tx.note(p.limit.Key, &p.limit.Rule, p.object, false, p.cost, &d, false)
}

// Reservations returns those of a key, which are valid until the next change; nil for a missing key
// or one without. The error is ErrWrongType for a key that holds no limiter.
func (tx *Tx) Reservations(k Key) (*reserve.Book, error) {
	x, err := tx.extension(k)
	return x.Reservations(), err
}

// extension returns the extension of a limiter; nil for a missing key or one without.
func (tx *Tx) extension(k Key) (*object.Extension, error) {
	o := tx.lookup(k)
	if _, state := o.(object.State); o != nil && !state && o.Kind() != object.TypeZSet {
		return nil, ErrWrongType
	}
	return object.ExtensionOf(o), nil
}
