package engine

import (
	"unsafe"

	"rlserver/engine/limit"
)

// TypeToken is a token bucket.
const TypeToken Type = "rl.token"

// token is a token bucket.
var token = algorithm{
	holds:  TypeToken,
	allows: func(l *Limit) int64 { return l.Token.Capacity },
	decide: func(tx *Tx, p *part, cost int64) error {
		o, _ := p.object.(*tokenObject)
		var state limit.Tokens
		state, p.answer = p.limit.Token.Take(o.tokens(), tx.now, cost)
		p.effect.putTokens(state)
		return nil
	},
}

// leaky is a leaky bucket that paces. It is kept like a token bucket and shares its keys.
var leaky = algorithm{
	holds:  TypeToken,
	allows: token.allows,
	decide: func(tx *Tx, p *part, cost int64) error {
		o, _ := p.object.(*tokenObject)
		var state limit.Tokens
		state, p.answer = p.limit.Token.Pace(o.tokens(), tx.now, cost)
		p.effect.putTokens(state)
		return nil
	},
}

// tokenObject is a token bucket, in 48 bytes. a is what is missing. The 64 bits of the Fraction are
// in b, in the spare bits and in the low 16 bits of since; between these and the time since, Unix
// ms, one bit tells that b is Earned instead.
type tokenObject struct {
	header
	packed
	since uint64
}

const (
	sinceBits   = 47 // up to the year 6429
	sinceShift  = 64 - sinceBits
	earnedBit   = 1 << 16
	latestSince = 1<<sinceBits - 1
)

func (*tokenObject) kind() Type { return TypeToken }
func (o *tokenObject) clone(name string) object {
	c := *o
	c.name = name
	return &c
}

// tokens is the state of the bucket; nil is a full one.
func (o *tokenObject) tokens() limit.Tokens {
	if o == nil {
		return limit.Tokens{}
	}
	t := limit.Tokens{Missing: o.a(), Since: int64(o.since >> sinceShift)}
	if o.since&earnedBit != 0 {
		t.Earned = o.b()
	} else {
		t.Fraction = uint64(o.b())<<24 | o.spare()<<16 | o.since&0xffff
	}
	return t
}
func (o *tokenObject) setTokens(t limit.Tokens) {
	since := uint64(min(max(t.Since, 0), latestSince)) << sinceShift
	if t.Earned > 0 {
		o.set(t.Missing, t.Earned, 0)
		o.since = since | earnedBit
		return
	}
	o.set(t.Missing, int64(t.Fraction>>24), t.Fraction>>16&0xff)
	o.since = since | t.Fraction&0xffff
}

func newToken(name []byte) *tokenObject {
	o, text := withName[tokenObject](name)
	o.name = text
	return o
}

func (o *tokenObject) weight() int64                        { return int64(unsafe.Sizeof(*o)) }
func (o *tokenObject) save(b *batch, f Effect) (whole bool) { return b.putState(f, o) }
func (o *tokenObject) content(c *Content)                   { c.Numbers = o.numbers() }
func (o *tokenObject) digest(d *Digest)                     { d.state(o) }
func (o *tokenObject) numbers() [4]int64 {
	t := o.tokens()
	return [4]int64{t.Missing, int64(t.Fraction), t.Since, t.Earned}
}
func (o *tokenObject) store(f *Effect) { f.putTokens(o.tokens()) }

func (o *tokenObject) refund(f *Effect, _, n int64) (back int64, used bool) {
	state, back := o.tokens().Refund(n)
	f.putTokens(state)
	return back, state.Missing > 0
}

func (o *tokenObject) moveBack(f *Effect, present, by int64) (moved bool) {
	state := o.tokens()
	moved = state.Since > present
	state.Since -= by
	f.putTokens(state)
	return moved
}

// putTokens makes the effect that of a token bucket's state. EffectTokens is for what was stored
// before there were Fractions.
func (f *Effect) putTokens(t limit.Tokens) {
	f.Kind, f.Tokens, f.Count, f.Counts = EffectBucket, t, limit.Count{}, limit.Counts{}
	if t.Earned > 0 {
		f.Kind = EffectTokens
	}
}
