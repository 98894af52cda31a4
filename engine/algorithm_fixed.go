package engine

import (
	"fmt"
	"time"
	"unsafe"

	"rlserver/engine/limit"
)

// TypeFixed is a fixed window.
const TypeFixed Type = "rl.fixed"

// fixed is a fixed window.
var fixed = algorithm{
	holds:  TypeFixed,
	allows: func(l *Limit) int64 { return l.Fixed.Limit },
	decide: func(tx *Tx, p *part, cost int64) error {
		o, _ := p.object.(*fixedObject)
		state, d, ok := p.limit.Fixed.Take(o.count(), tx.now, cost)
		if !ok {
			return otherWindow(p.limit.Key, o)
		}
		p.answer = d
		p.effect.putCount(state)
		return nil
	},
	succeeds: func(o object, l *Limit, now int64) bool {
		c, _ := o.(*fixedObject)
		_, _, ok := l.Fixed.Take(c.count(), now, 0)
		return ok
	},
}

// otherWindow is the error of a call on a key that counts in a window that says nothing of the
// call's.
func otherWindow(k Key, c *fixedObject) error {
	window := c.count()
	return Error(
		fmt.Sprintf("ERR key '%.128s' counts in another window until %s: give each window of RL.FIXED a key of its own",
			k.Name, time.UnixMilli(window.End()).UTC().Format("2006-01-02T15:04:05.000Z")),
	)
}

// fixedObject is a fixed window. a is the hits used, b the window's length.
type fixedObject struct {
	header
	packed
	start int64
}

func (*fixedObject) kind() Type { return TypeFixed }
func (o *fixedObject) clone(name string) object {
	c := *o
	c.name = name
	return &c
}

// count is the state of the window; nil is an unused one.
func (o *fixedObject) count() limit.Count {
	if o == nil {
		return limit.Count{}
	}
	return limit.Count{Start: o.start, Length: o.b(), Used: o.a()}
}
func (o *fixedObject) setCount(c limit.Count) {
	o.set(c.Used, c.Length, 0)
	o.start = c.Start
}

func newFixed(name []byte) *fixedObject {
	o, text := withName[fixedObject](name)
	o.name = text
	return o
}

func (o *fixedObject) weight() int64                        { return int64(unsafe.Sizeof(*o)) }
func (o *fixedObject) save(b *batch, f Effect) (whole bool) { return b.putState(f, o) }
func (o *fixedObject) content(c *Content)                   { c.Numbers = o.numbers() }
func (o *fixedObject) digest(d *Digest)                     { d.state(o) }
func (o *fixedObject) numbers() [4]int64 {
	c := o.count()
	return [4]int64{c.Start, c.Length, c.Used}
}
func (o *fixedObject) store(f *Effect) { f.putCount(o.count()) }

// refund gives nothing back in the millisecond in which the window is over and the key still there,
// as keys are at their deadline.
func (o *fixedObject) refund(f *Effect, now, n int64) (back int64, used bool) {
	if o.expireAt == now {
		return 0, true
	}
	state, back := o.count().Refund(n)
	f.putCount(state)
	return back, state.Used > 0
}

// moveBack leaves the length open: which window of a calendar the present is in is not known. What
// is counted from the present on is in it.
func (o *fixedObject) moveBack(f *Effect, present, _ int64) (moved bool) {
	state := o.count()
	f.putCount(limit.Count{Start: present, Used: state.Used})
	f.ExpireAt = after(present, o.expireAt-state.Start)
	return state.Start > present
}

// putCount makes the effect that of a fixed window's state. EffectCount is for what was stored
// before Lengths were.
func (f *Effect) putCount(c limit.Count) {
	f.Kind, f.Tokens, f.Count, f.Counts = EffectWindow, limit.Tokens{}, c, limit.Counts{}
	if c.Length == 0 {
		f.Kind = EffectCount
	}
}
