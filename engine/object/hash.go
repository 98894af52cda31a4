package object

import (
	"iter"
	"math/rand/v2"
	"slices"
	"unsafe"

	"rlserver/engine/effect"
	"rlserver/internal/dict"
	"rlserver/internal/rdb"
)

// Hash is a hash.
type Hash struct {
	Header
	Clock
	Fields Fields
}

// NewHash returns an empty hash. h hashes its fields.
func NewHash(h *dict.Hasher, name []byte) *Hash {
	o, text := withName[Hash](name)
	o.name, o.Fields = text, newFields(h)
	return o
}

// HashIn returns a view of an object that is a hash, otherwise an empty one.
func HashIn(o Object) HashView {
	if h, ok := o.(*Hash); ok {
		return h.View()
	}
	return HashView{}
}

func (o *Hash) Content(c *Content) {
	c.Append = func(b []byte) []byte {
		b = rdb.AppendHash(b, o.Fields.Len())
		for field, value := range o.Fields.All() {
			b = rdb.AppendText(rdb.AppendText(b, field), value)
		}
		return b
	}
}

func (o *Hash) digest(d *Digest) {
	d.MixNumber(digestHash)
	for field, value := range o.Fields.All() {
		d.pair([]byte(field), []byte(value))
	}
}

func (o *Hash) change(f *effect.Effect) (left int) {
	if f.Kind == effect.HashSet {
		o.Fields.Set(f.Field, f.Value)
	} else {
		o.Fields.Remove(f.Field)
	}
	return o.Fields.Len()
}

// View returns a view of the hash; a nil Hash is empty.
func (o *Hash) View() HashView {
	if o == nil {
		return HashView{}
	}
	return HashView{&o.Fields}
}

func (o *Hash) Encoding(p Packing) string {
	if int64(o.Fields.Len()) > p.HashEntries {
		return "hashtable"
	}
	for field, value := range o.Fields.All() {
		if int64(max(len(field), len(value))) > p.HashValue {
			return "hashtable"
		}
	}
	return "listpack"
}

func (o *Hash) Weight() int64 {
	return int64(unsafe.Sizeof(*o)) + o.Fields.weight()
}

func (*Hash) Kind() Type { return TypeHash }

func (o *Hash) Clone(name string) Object {
	return &Hash{Header: Header{name, o.ExpireAt}, Clock: o.Clock, Fields: o.Fields.Clone()}
}

func (o *Hash) save(b *Batch) (whole bool) {
	if b.isLarge(o.Fields.Len(), o.Fields.text) {
		b.postponeFields(o.ExpireAt, &o.Fields, func(b *Batch, pairs []pair) (n int) {
			for n < len(pairs) && !b.Full() {
				b.putField(pairs[n].field, pairs[n].value)
				n++
			}
			return n
		})
		return false
	}
	for field, value := range o.Fields.All() {
		b.putField(field, value)
	}
	b.putExpire(o.ExpireAt)
	return true
}

// HashView is a read-only view of the hash of a key; methods of Tx change hashes. The zero value is
// an empty hash, that of a missing key. A view is valid until the key's next change or the Tx's
// end; the fields and values that it returns stay valid.
type HashView struct{ Fields *Fields }

// Len returns the number of fields.
func (h HashView) Len() int {
	if h.Fields == nil {
		return 0
	}
	return h.Fields.Len()
}

// Get returns the value of a field; ok is false if it is missing.
func (h HashView) Get(field []byte) (value string, ok bool) {
	if h.Fields == nil {
		return "", false
	}
	p := h.Fields.Find(field)
	if p == nil {
		return "", false
	}
	return p.value, true
}

// All yields the fields and their values: up to 512 in the order of insertion, more in no
// particular order.
func (h HashView) All() iter.Seq2[string, string] {
	if h.Fields == nil {
		return func(func(string, string) bool) {}
	}
	return h.Fields.All()
}

// Keep returns the fields and their values as they are now, for one iteration by one goroutine
// after the locks are released. The cost does not depend on the size, but changes until the end of
// the iteration copy the fields that they change.
func (h HashView) Keep() iter.Seq2[string, string] {
	if h.Fields == nil || h.Fields.Many == nil {
		few := HashView{}
		if h.Fields != nil {
			few.Fields = &Fields{few: slices.Clone(h.Fields.few)}
		}
		return few.All()
	}
	return h.Fields.Many.freeze().all()
}

// Scan visits about count fields from the cursor on, and returns the cursor at which to continue, 0
// after the last. A scan begins with 0. A field that exists throughout is visited at least once. A
// hash of up to 512 fields is visited whole.
func (h HashView) Scan(cursor uint64, count int, visit func(field, value string)) (next uint64) {
	if h.Fields == nil {
		return 0
	}
	return h.Fields.scan(cursor, count, visit)
}

// Random returns a random field, each with the same probability; ok is false if the hash is empty.
func (h HashView) Random(r *rand.Rand) (field, value string, ok bool) {
	if h.Len() == 0 {
		return "", "", false
	}
	p := h.Fields.random(r)
	return p.field, p.value, true
}

// Sample yields n different fields, or all if there are at most n, in no particular order. Each set
// of n fields has the same probability.
func (h HashView) Sample(r *rand.Rand, n int64) iter.Seq2[string, string] {
	if n >= int64(h.Len()) {
		return h.All()
	}
	return h.Fields.sample(r, int(n))
}

// Pick yields n random fields, with repetitions, each with the same probability; nothing if the
// hash is empty.
func (h HashView) Pick(r *rand.Rand, n int) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for range n {
			field, value, ok := h.Random(r)
			if !ok || !yield(field, value) {
				return
			}
		}
	}
}
