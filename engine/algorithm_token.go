package engine

import (
	"rlserver/engine/limit"
	"rlserver/engine/object"
)

// token is a token bucket.
var token = algorithm{
	holds: object.TypeToken,
	decide: func(tx *Tx, p *part) error {
		o := object.TokenIn(p.object)
		var state limit.Tokens
		state, p.answer = p.limit.Token.Take(o.Tokens(), tx.now, p.cost)
		p.effect.PutTokens(state)
		return nil
	},
	alone: func(_ *Tx, p *part, _ int, at, held, cost int64) limit.Decision {
		b := p.limit.Token
		b.Capacity -= held
		_, d := b.Take(object.TokenIn(p.object).Tokens(), at, cost)
		d.Limit += held
		return d
	},
}

// leaky is a leaky bucket that delays calls. It has the state of a token bucket and shares its
// keys.
var leaky = algorithm{
	holds: object.TypeToken,
	decide: func(tx *Tx, p *part) error {
		o := object.TokenIn(p.object)
		var state limit.Tokens
		state, p.answer = p.limit.Token.Pace(o.Tokens(), tx.now, p.cost)
		p.effect.PutTokens(state)
		return nil
	},
	alone: token.alone,
}
