package engine

import (
	"unsafe"

	"rlserver/engine/limit"
)

// TypeCounter is a sliding window counter.
const TypeCounter Type = "rl.counter"

// slidingCounter is a sliding window counter.
var slidingCounter = algorithm{
	holds:  TypeCounter,
	allows: func(l *Limit) int64 { return l.Counter.Limit },
	decide: func(tx *Tx, p *part, cost int64) error {
		o, _ := p.object.(*counterObject)
		var state limit.Counts
		state, p.answer = p.limit.Counter.Take(o.counts(), tx.now, cost)
		p.effect.putCounts(state)
		return nil
	},
}

// counterObject is a sliding window counter. a is the hits of the current window, b its length.
type counterObject struct {
	header
	packed
	start    int64
	previous int64
}

func (*counterObject) kind() Type { return TypeCounter }
func (o *counterObject) clone(name string) object {
	c := *o
	c.name = name
	return &c
}

func newCounter(name []byte) *counterObject {
	o, text := withName[counterObject](name)
	o.name = text
	return o
}

// counts is the state of the counter; nil is an unused one.
func (o *counterObject) counts() limit.Counts {
	if o == nil {
		return limit.Counts{}
	}
	return limit.Counts{Start: o.start, Length: o.b(), Current: o.a(), Previous: o.previous}
}
func (o *counterObject) setCounts(c limit.Counts) {
	o.set(c.Current, c.Length, 0)
	o.start, o.previous = c.Start, c.Previous
}

func (o *counterObject) weight() int64                        { return int64(unsafe.Sizeof(*o)) }
func (o *counterObject) save(b *batch, f Effect) (whole bool) { return b.putState(f, o) }
func (o *counterObject) content(c *Content)                   { c.Numbers = o.numbers() }
func (o *counterObject) digest(d *Digest)                     { d.state(o) }
func (o *counterObject) numbers() [4]int64 {
	c := o.counts()
	return [4]int64{c.Start, c.Length, c.Current, c.Previous}
}
func (o *counterObject) store(f *Effect) { f.putCounts(o.counts()) }

func (o *counterObject) refund(f *Effect, now, n int64) (back int64, used bool) {
	state, back := o.counts().Refund(now, n)
	f.putCounts(state)
	return back, state != limit.Counts{}
}

func (o *counterObject) moveBack(f *Effect, present, _ int64) (moved bool) {
	state := o.counts()
	moved = state.Start > present
	state, f.ExpireAt = state.MoveBack(present)
	f.putCounts(state)
	return moved
}

// putCounts makes the effect that of a sliding window counter's state.
func (f *Effect) putCounts(c limit.Counts) {
	f.Kind, f.Tokens, f.Count, f.Counts = EffectCounter, limit.Tokens{}, limit.Count{}, c
}

// fitsCounter reports whether the numbers can be those of a counter.
func (f *Effect) fitsCounter() bool {
	c := f.Counts
	return isCount(c.Current) && isCount(c.Previous) && isDuration(c.Length) && c.Length > 0
}
