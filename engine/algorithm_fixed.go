package engine

import (
	"time"

	"rlserver/engine/limit"
	"rlserver/engine/object"
)

// fixed is a fixed window.
var fixed = algorithm{
	holds: object.TypeFixed,
	decide: func(tx *Tx, p *part) error {
		o := object.FixedIn(p.object)
		state, d, ok := p.limit.Fixed.Take(o.Count(), tx.now, p.cost)
		if !ok {
			if p.object = tx.former(p.object); p.object != nil {
				return otherWindow(p.limit.Key, o)
			}
			p.book, p.drop = nil, true
			state, d, _ = p.limit.Fixed.Take(limit.Count{}, tx.now, p.cost)
		}
		p.answer = d
		p.effect.PutCount(state)
		return nil
	},
	alone: func(_ *Tx, p *part, _ int, at, held, cost int64) limit.Decision {
		f := p.limit.Fixed
		f.Limit -= held
		_, d, _ := f.Take(object.FixedIn(p.object).Count(), at, cost)
		d.Limit = p.limit.Fixed.Limit
		return d
	},
	succeeds: func(o object.Object, l *Limit, now int64) bool {
		c := object.FixedIn(o)
		_, _, ok := l.Fixed.Take(c.Count(), now, 0)
		return ok
	},
}

// otherWindow returns the error for a call on a key that counts in a window unrelated to the window
// of the call.
func otherWindow(k Key, c *object.Fixed) error {
	const text = "ERR key '%.128s' counts in another window until %s: give each window of RL.FIXED a key of its own"
	return Errorf(text, k.Name, time.UnixMilli(c.Count().End()).UTC().Format("2006-01-02T15:04:05.000Z"))
}
