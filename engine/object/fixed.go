package object

import (
	"unsafe"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
)

// TypeFixed is a fixed window.
const TypeFixed Type = "rl.fixed"

// Fixed is a fixed window. packed.a is the hits used, packed.b the window's length.
type Fixed struct {
	record
	packed
	start int64
}

func (*Fixed) Kind() Type { return TypeFixed }

func (o *Fixed) Name() string { return nameAt(unsafe.Add(unsafe.Pointer(o), unsafe.Sizeof(*o))) }

func (o *Fixed) Clone(name string) Object { return cloneAs(o, name) }

// Count returns the state of the window; nil is an unused one.
func (o *Fixed) Count() limit.Count {
	if o == nil {
		return limit.Count{}
	}
	return limit.Count{Start: o.start, Length: o.b(), Used: o.a()}
}

// SetCount sets the state of the window.
func (o *Fixed) SetCount(c limit.Count) {
	o.set(c.Used, c.Length, 0)
	o.start = c.Start
}

func (o *Fixed) Weight() int64 { return recordSize(FormFixed, o.Name()) }

func (o *Fixed) save(b *Batch) (whole bool) { return b.putState(o) }

func (o *Fixed) Content(c *Content) { numbersContent(c, TypeFixed, o.Numbers()) }

func (o *Fixed) digest(d *Digest) { d.state(o) }

func (o *Fixed) Numbers() [4]int64 {
	c := o.Count()
	return [4]int64{c.Start, c.Length, c.Used}
}

func (o *Fixed) store(f *effect.Effect) { f.PutCount(o.Count()) }

// Refund takes the key's deadline for the end of a window of unknown length: the key still exists
// in that millisecond.
func (o *Fixed) Refund(f *effect.Effect, now, n int64) (back int64, used bool) {
	if o.b() == 0 && o.ExpireAt == now {
		return 0, true
	}
	state, back := o.Count().Refund(now, n)
	f.PutCount(state)
	return back, state.Used > 0
}

// MoveBack sets the length to 0, unknown, because the calendar window of the present is not known
// here. Hits from the present on count in it.
func (o *Fixed) MoveBack(f *effect.Effect, present, _ int64) (moved bool) {
	state := o.Count()
	f.PutCount(limit.Count{Start: present, Used: state.Used})
	f.ExpireAt = limit.After(present, o.ExpireAt-state.Start)
	return state.Start > present
}
