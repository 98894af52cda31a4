package engine

import (
	"slices"

	"rlserver/engine/effect"
	"rlserver/engine/hits"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/rule"
)

// slide is an exact sliding window over a log of hits, a sorted set. Several limits may share one
// log.
var slide = algorithm{
	holds: object.TypeZSet,
	id:    namesHits,
	decide: func(tx *Tx, p *part) error {
		rules := tx.rulesOf(p)
		if !p.asks {
			tx.log.Load(p.object, &tx.few)
			p.answer = limit.RepeatedAll(rules, &tx.log, tx.now)
			return nil
		}
		p.answer, p.repeated = tx.decideSlide(p.object, rules, p.cost, p.limit.ID)
		p.trim = tx.lapsed(rules)
		if !p.answer.Allowed {
			tx.endSlideWithKey(&p.answer, p.object, rules, p.cost)
		}
		return nil
	},
	record: func(tx *Tx, p *part, expireAt int64) object.Object {
		return tx.recordSlide(p.limit.Key, p.object, p.limit.ID, p.trim, p.cost, expireAt)
	},
	alone: func(tx *Tx, p *part, one int, at, held, cost int64) limit.Decision {
		w := [1]limit.Window{tx.rules[one]}
		w[0].Limit -= held
		d := limit.DecideAll(w[:], &tx.log, at, cost)
		d.Limit += held
		return d
	},
	admitsFrom: func(tx *Tx, p *part, t int64) int64 {
		switch {
		case p.repeated:
			rules := tx.rulesOf(p)
			if at, _ := tx.log.Admitted(p.limit.ID); t < limit.After(limit.Lapse(at), limit.Longest(rules)) {
				return t
			}
			if slices.ContainsFunc(rules, func(w limit.Window) bool { return max(p.cost, 1) > w.Limit }) {
				return limit.Never
			}
		case tx.log.After(float64(tx.now)) == tx.log.Len():
			return t
		}
		if p.book != nil {
			tx.rulesOf(p)
			tx.view = view{tx, p}
			return p.book.AdmitsFrom(&tx.view, -1, t, p.cost)
		}
		return limit.AdmitsFrom(tx.rulesOf(p), &tx.log, t, p.cost, &tx.budget)
	},
}

// Slide decides a call of cost hits against sliding windows over the log of the key, a sorted set
// with one member per hit. If all windows admit the call it is recorded once, otherwise nothing
// changes. A missing key is an empty log. An admitted call drops the hits that no window covers.
//
// The members of an admitted call are `<ms>-<seq>`; with an id (not nil) they are the id, then
// id:2, id:3, …, without names that are taken, see zset.Set.AddCall. A call whose id is in the
// longest window already is admitted, and nothing is recorded.
func (tx *Tx) Slide(k Key, rules []limit.Window, cost int64, id []byte) (limit.Decision, error) {
	o := tx.lookupPacked(k)
	if !slide.fits(o) {
		return limit.Decision{}, ErrWrongType
	}
	if object.ExtensionOf(o) != nil {
		return tx.SlideAs(Limit{Key: k, Cost: cost, ID: id}, rules)
	}
	d, repeated := tx.decideSlide(o, rules, cost, id)
	if !d.Allowed || cost == 0 || repeated {
		by := rule.Rule{Kind: rule.Slide, Slide: rules[d.Index]}
		tx.endSlideWithKey(&d, o, rules, cost)
		tx.note(k, &by, o, false, cost, &d, false)
		return d, nil
	}
	fresh := o == nil
	o = tx.recordSlide(k, o, id, tx.lapsed(rules), cost, limit.After(tx.now, d.ResetAfter))
	tx.note(k, nil, o, fresh, cost, &d, false)
	return d, nil
}

// decideSlide decides a call, and sets tx.log to the log of the object.
func (tx *Tx) decideSlide(
	o object.Object, rules []limit.Window, cost int64, id []byte,
) (d limit.Decision, repeated bool) {
	tx.log.Load(o, &tx.few)
	if id != nil {
		if at, ok := tx.log.Admitted(id); ok && at > float64(tx.now-limit.Longest(rules)) {
			return limit.RepeatedAll(rules, &tx.log, tx.now), true
		}
	}
	return limit.DecideAll(rules, &tx.log, tx.now, cost), false
}

// lapsed returns how many hits of tx.log no window covers.
func (tx *Tx) lapsed(rules []limit.Window) int {
	return tx.log.After(float64(tx.now - limit.Longest(rules)))
}

func (tx *Tx) recordSlide(k Key, o object.Object, id []byte, trim int, cost, expireAt int64) object.Object {
	if id == nil {
		return tx.recordHits(k, o, trim, cost, expireAt)
	}
	return tx.recordHitsAs(k, o, id, trim, cost, expireAt)
}

// recordHits drops the lapsed hits, adds new ones and sets the deadline, in one effect. Only a
// millisecond with calls of 2^52 hits and more can lack free numbers in a row.
func (tx *Tx) recordHits(k Key, o object.Object, trim int, n, expireAt int64) object.Object {
	tx.log.Reload(o, &tx.few)
	seq, ok := tx.e.shardOf(k).seq.Next(tx.log.NamesAt(tx.now), tx.now, uint64(n))
	if !ok && n > 1 {
		o = tx.recordHits(k, o, trim, n/2, expireAt)
		tx.log.Drop() // it has changed
		return tx.recordHits(k, o, 0, n-n/2, expireAt)
	}
	added := effect.Hits{At: tx.now, Seq: seq, N: n}
	return tx.apply(o, &effect.Effect{Kind: effect.AddHits, Key: k, Lo: trim, Hits: added, ExpireAt: expireAt})
}

// recordHitsAs is recordHits for a call with an id. Lapsed hits with names of the id are dropped
// first, which frees their names. Only very many members with such names can take all; further hits
// have no id then.
func (tx *Tx) recordHitsAs(k Key, o object.Object, id []byte, trim int, n, expireAt int64) object.Object {
	o = tx.e.unpacked(tx.db, k, o)
	free := hits.Free(o, id, n)
	if trim > 0 && (len(free) != 1 || free[0][0] != 1) {
		o = tx.apply(o, &effect.Effect{Kind: effect.RemoveSpan, Key: k, Hi: trim})
		free, trim = hits.Free(o, id, n), 0
	}
	for _, r := range free {
		h := effect.Hits{At: tx.now, Seq: r[0], N: int64(r[1] - r[0])}
		o = tx.apply(o, &effect.Effect{Kind: effect.Call, Key: k, Field: id, Lo: trim, Hits: h, ExpireAt: expireAt})
		n, trim = n-h.N, 0
	}
	if n > 0 {
		tx.log.Drop() // it has changed
		return tx.recordHits(k, o, trim, n, expireAt)
	}
	return o
}

// endSlideWithKey is endWithKey for the windows over tx.log. If the key expires before several of
// them admit, these wait equally long, and the answer is about the first.
func (tx *Tx) endSlideWithKey(d *limit.Decision, o object.Object, rules []limit.Window, cost int64) {
	before := d.RetryAfter
	tx.endWithKey(d, o)
	if d.RetryAfter == before {
		return
	}
	for i := range rules[:d.Index] {
		if one := limit.DecideAll(rules[i:i+1], &tx.log, tx.now, cost); one.RetryAfter >= d.RetryAfter {
			d.Limit, d.Remaining, d.Index = one.Limit, one.Remaining, i
			break
		}
	}
}
