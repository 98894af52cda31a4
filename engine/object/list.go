package object

import (
	"unsafe"

	"rlserver/engine/effect"
	"rlserver/internal/dict"
	"rlserver/internal/list"
	"rlserver/internal/rdb"
)

// List is a list.
type List struct {
	Header
	Clock
	Elements list.List
}

func newList(_ *dict.Hasher, name []byte) Object {
	o, text := withName[List](name)
	o.name = text
	return o
}

// View returns a view of the list; a nil List is empty.
func (o *List) View() list.View {
	if o == nil {
		return list.View{}
	}
	return list.ViewOf(&o.Elements)
}

func (o *List) change(f *effect.Effect) (left int) {
	if f.Kind == effect.RemoveSpan {
		o.Elements.Remove(f.Lo, f.Hi)
		return o.Elements.Len()
	}
	at := f.Lo
	for e := range effect.Elements(f.Value) {
		o.Elements.Insert(at, e)
		at++
	}
	return o.Elements.Len()
}

func (*List) Kind() Type { return TypeList }

func (o *List) Weight() int64 { return int64(unsafe.Sizeof(*o)) + int64(o.Elements.Weight()) }

// Encoding returns that of all lists in Redis 7.0.
func (*List) Encoding(Packing) string { return "quicklist" }

func (o *List) Content(c *Content) {
	v := list.ViewOf(o.Elements.Clone())
	c.Append, c.Lasting = func(b []byte) []byte {
		b = rdb.AppendList(b, v.Len())
		for e := range v.Range(0, v.Len()) {
			b = rdb.AppendText(b, e)
		}
		return b
	}, true
}

func (o *List) digest(d *Digest) {
	d.MixNumber(digestList)
	for e := range o.Elements.All() {
		d.Mix(e)
	}
}

func (o *List) Clone(name string) Object {
	return &List{Header: Header{name, o.ExpireAt}, Clock: o.Clock, Elements: *o.Elements.Clone()}
}

func (o *List) save(b *Batch) (whole bool) {
	if b.isLarge(o.Elements.Len(), o.Elements.Bytes()) {
		elements, rank := o.Elements.Clone(), 0
		b.postpone(o.ExpireAt, func(b *Batch) (more bool) {
			rank += b.putElements(TypeList, rank, elements.Range(rank, elements.Len()))
			return rank < elements.Len()
		})
		return false
	}
	b.putElements(TypeList, 0, o.Elements.All())
	b.putExpire(o.ExpireAt)
	return true
}
