package object

import (
	"unsafe"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
)

// TypeToken is a token bucket.
const TypeToken Type = "rl.token"

// Token is a token bucket, in 32 bytes and its name. packed.a is the missing tokens. The 64 bits of
// Fraction are in packed.b, in the spare bits and in the low 16 bits of since. Bit 16 of since is
// set if packed.b is Earned instead, and the bits above it are the time Since, Unix ms.
type Token struct {
	record
	packed
	since uint64
}

const (
	sinceBits   = 47 // up to the year 6429
	sinceShift  = 64 - sinceBits
	earnedBit   = 1 << 16
	latestSince = 1<<sinceBits - 1
)

func (*Token) Kind() Type { return TypeToken }

func (o *Token) Name() string { return nameAt(unsafe.Add(unsafe.Pointer(o), unsafe.Sizeof(*o))) }

func (o *Token) Clone(name string) Object { return cloneAs(o, name) }

// Tokens returns the state of the bucket; nil is a full one.
func (o *Token) Tokens() limit.Tokens {
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

// SetTokens sets the state of the bucket.
func (o *Token) SetTokens(t limit.Tokens) {
	since := uint64(min(max(t.Since, 0), latestSince)) << sinceShift
	if t.Earned > 0 {
		o.set(t.Missing, t.Earned, 0)
		o.since = since | earnedBit
		return
	}
	o.set(t.Missing, int64(t.Fraction>>24), t.Fraction>>16&0xff)
	o.since = since | t.Fraction&0xffff
}

func (o *Token) Weight() int64 { return recordSize(FormToken, o.Name()) }

func (o *Token) save(b *Batch) (whole bool) { return b.putState(o) }

func (o *Token) Content(c *Content) { numbersContent(c, TypeToken, o.Numbers()) }

func (o *Token) digest(d *Digest) { d.state(o) }

func (o *Token) Numbers() [4]int64 {
	t := o.Tokens()
	return [4]int64{t.Missing, int64(t.Fraction), t.Since, t.Earned}
}

func (o *Token) store(f *effect.Effect) { f.PutTokens(o.Tokens()) }

func (o *Token) Refund(f *effect.Effect, _, n int64) (back int64, used bool) {
	state, back := o.Tokens().Refund(n)
	f.PutTokens(state)
	return back, state.Missing > 0
}

func (o *Token) MoveBack(f *effect.Effect, present, by int64) (moved bool) {
	state := o.Tokens()
	moved = state.Since > present
	state.Since -= by
	f.PutTokens(state)
	return moved
}
