package engine

import (
	"rlserver/engine/limit"
	"rlserver/engine/object"
)

// slidingCounter is a sliding window counter.
var slidingCounter = algorithm{
	holds: object.TypeCounter,
	decide: func(tx *Tx, p *part) error {
		o := object.CounterIn(p.object)
		var state limit.Counts
		state, p.answer = p.limit.Counter.Take(o.Counts(), tx.now, p.cost)
		p.effect.PutCounts(state)
		return nil
	},
	alone: func(_ *Tx, p *part, _ int, at, held, cost int64) limit.Decision {
		c := p.limit.Counter
		c.Limit -= held
		_, d := c.Take(object.CounterIn(p.object).Counts(), at, cost)
		d.Limit += held
		return d
	},
}
