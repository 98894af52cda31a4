package object

import (
	"unsafe"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
)

// TypeCounter is a sliding window counter.
const TypeCounter Type = "rl.counter"

// Counter is a sliding window counter. packed.a is the hits of the current window, packed.b its
// length.
type Counter struct {
	record
	packed
	start    int64
	previous int64
}

func (*Counter) Kind() Type { return TypeCounter }

func (o *Counter) Name() string { return nameAt(unsafe.Add(unsafe.Pointer(o), unsafe.Sizeof(*o))) }

func (o *Counter) Clone(name string) Object { return cloneAs(o, name) }

// Counts returns the state of the counter; nil is an unused one.
func (o *Counter) Counts() limit.Counts {
	if o == nil {
		return limit.Counts{}
	}
	return limit.Counts{Start: o.start, Length: o.b(), Current: o.a(), Previous: o.previous}
}

// SetCounts sets the state of the counter.
func (o *Counter) SetCounts(c limit.Counts) {
	o.set(c.Current, c.Length, 0)
	o.start, o.previous = c.Start, c.Previous
}

func (o *Counter) Weight() int64 { return recordSize(FormCounter, o.Name()) }

func (o *Counter) save(b *Batch) (whole bool) { return b.putState(o) }

func (o *Counter) Content(c *Content) { numbersContent(c, TypeCounter, o.Numbers()) }

func (o *Counter) digest(d *Digest) { d.state(o) }

func (o *Counter) Numbers() [4]int64 {
	c := o.Counts()
	return [4]int64{c.Start, c.Length, c.Current, c.Previous}
}

func (o *Counter) store(f *effect.Effect) { f.PutCounts(o.Counts()) }

func (o *Counter) Refund(f *effect.Effect, now, n int64) (back int64, used bool) {
	state, back := o.Counts().Refund(now, n)
	f.PutCounts(state)
	return back, state != limit.Counts{}
}

func (o *Counter) MoveBack(f *effect.Effect, present, _ int64) (moved bool) {
	state := o.Counts()
	moved = state.Start > present
	state, f.ExpireAt = state.MoveBack(present)
	f.PutCounts(state)
	return moved
}
