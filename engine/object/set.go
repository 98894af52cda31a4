package object

import (
	"iter"
	"math/rand/v2"
	"unsafe"

	"rlserver/engine/effect"
	"rlserver/internal/dict"
	"rlserver/internal/grammar"
	"rlserver/internal/rdb"
)

// Set is a set. Its members are the fields of a hash without values.
type Set struct {
	Header
	Clock
	members Fields
	ints    int // how many members are integers
}

func newSet(h *dict.Hasher, name []byte) Object {
	o, text := withName[Set](name)
	o.name, o.members = text, newFields(h)
	return o
}

func (o *Set) change(f *effect.Effect) (left int) {
	before := o.members.Len()
	if f.Kind == effect.Remove {
		o.members.Remove(f.Field)
		o.count(f.Field, o.members.Len()-before)
		return o.members.Len()
	}
	for e := range effect.Elements(f.Value) {
		before := o.members.Len()
		o.members.Set(e, nil)
		o.count(e, o.members.Len()-before)
	}
	return o.members.Len()
}

// count adds n to the number of members that are integers, if the member is one.
func (o *Set) count(member []byte, n int) {
	if _, ok := grammar.ParseInt(member); ok {
		o.ints += n
	}
}

func (*Set) Kind() Type { return TypeSet }

func (o *Set) Weight() int64 { return int64(unsafe.Sizeof(*o)) + o.members.weight() }

func (o *Set) Encoding(p Packing) string {
	if o.ints == o.members.Len() && int64(o.ints) <= p.SetInts {
		return "intset"
	}
	return "hashtable"
}

func (o *Set) Content(c *Content) {
	c.Append = func(b []byte) []byte {
		b = rdb.AppendSet(b, o.members.Len())
		for member := range o.members.All() {
			b = rdb.AppendText(b, member)
		}
		return b
	}
}

func (o *Set) digest(d *Digest) {
	d.MixNumber(digestSet)
	for member := range o.members.All() {
		d.Add([]byte(member))
	}
}

func (o *Set) Clone(name string) Object {
	return &Set{Header: Header{name, o.ExpireAt}, Clock: o.Clock, members: o.members.Clone(), ints: o.ints}
}

func (o *Set) save(b *Batch) (whole bool) {
	if b.isLarge(o.members.Len(), o.members.text) {
		b.postponeFields(o.ExpireAt, &o.members, func(b *Batch, pairs []pair) (n int) {
			return b.putElements(TypeSet, 0, func(yield func([]byte) bool) {
				for _, p := range pairs {
					if !yield(BytesOf(p.field)) {
						return
					}
				}
			})
		})
		return false
	}
	b.putElements(TypeSet, 0, o.View().bytes())
	b.putExpire(o.ExpireAt)
	return true
}

// View returns a view of the set; a nil Set is empty.
func (o *Set) View() SetView {
	if o == nil {
		return SetView{}
	}
	return SetView{fields: HashView{&o.members}, ints: o.ints == o.members.Len()}
}

// SetIn returns a view of an object that is a set, otherwise an empty one.
func SetIn(o Object) SetView {
	s, _ := o.(*Set)
	return s.View()
}

// SetView is a read-only view of the set of a key. The zero value is an empty set, that of a
// missing key. A view is valid until the key's next change or the Tx's end; the members that it
// returns stay valid.
type SetView struct {
	fields HashView
	ints   bool
}

// Len returns the number of members.
func (s SetView) Len() int { return s.fields.Len() }

// Ints reports whether all members are integers.
func (s SetView) Ints() bool { return s.ints }

// Has reports whether the set has a member.
func (s SetView) Has(member []byte) bool {
	_, found := s.fields.Get(member)
	return found
}

// All yields the members: up to 512 in the order of insertion, more in no particular order.
func (s SetView) All() iter.Seq[string] { return names(s.fields.All()) }

// Range yields the members from the lo-th up to but not including the hi-th, in the order of All.
func (s SetView) Range(lo, hi int) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		i := 0
		for member := range s.bytes() {
			if i >= hi || i >= lo && !yield(member) {
				return
			}
			i++
		}
	}
}

// Keep returns the members as they are now, for one iteration by one goroutine after the locks are
// released, as HashView.Keep does.
func (s SetView) Keep() iter.Seq[string] { return names(s.fields.Keep()) }

// Scan is HashView.Scan.
func (s SetView) Scan(cursor uint64, count int, visit func(member string)) (next uint64) {
	return s.fields.Scan(cursor, count, func(member, _ string) { visit(member) })
}

// Random returns a random member, each with the same probability; ok is false if the set is empty.
func (s SetView) Random(r *rand.Rand) (member string, ok bool) {
	member, _, ok = s.fields.Random(r)
	return member, ok
}

// Sample yields n different members, or all if there are at most n, in no particular order. Each
// set of n members has the same probability.
func (s SetView) Sample(r *rand.Rand, n int64) iter.Seq[string] { return names(s.fields.Sample(r, n)) }

// Pick yields n random members, with repetitions; nothing if the set is empty.
func (s SetView) Pick(r *rand.Rand, n int) iter.Seq[string] { return names(s.fields.Pick(r, n)) }

func (s SetView) bytes() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for member := range s.All() {
			if !yield(BytesOf(member)) {
				return
			}
		}
	}
}

func names(pairs iter.Seq2[string, string]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name := range pairs {
			if !yield(name) {
				return
			}
		}
	}
}
