package object

import (
	"iter"
	"math/rand/v2"
	"slices"
	"unsafe"

	"rlserver/dict"
	"rlserver/engine/effect"
)

// Hash is a hash.
type Hash struct {
	Header
	Clock
	Fields Fields
}

// NewHash returns an empty hash, whose fields h hashes.
func NewHash(h *dict.Hasher, name []byte) *Hash {
	o, text := withName[Hash](name)
	o.Name, o.Fields = text, newFields(h)
	return o
}

// HashIn is the hash of an object, or of none.
func HashIn(o Object) HashView {
	if h, ok := o.(*Hash); ok {
		return h.View()
	}
	return HashView{}
}

func (o *Hash) Content(c *Content) { c.Hash = HashIn(o) }

func (o *Hash) digest(d *Digest) {
	d.MixNumber(digestHash)
	for field, value := range o.Fields.All() {
		d.pair([]byte(field), []byte(value))
	}
}

// View shows the fields.
func (o *Hash) View() HashView { return HashView{&o.Fields} }

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
	table := cap(o.Fields.few) * int(unsafe.Sizeof(pair{}))
	if o.Fields.Many != nil {
		table = o.Fields.Len() * fieldWeight
	}
	return int64(unsafe.Sizeof(*o)) + int64(table+o.Fields.text)
}

func (*Hash) Kind() Type { return TypeHash }

func (o *Hash) Clone(name string) Object {
	return &Hash{Header: Header{name, o.ExpireAt}, Clock: o.Clock, Fields: o.Fields.Clone()}
}

func (o *Hash) save(b *Batch, f effect.Effect) (whole bool) {
	if o.Fields.Len() > SmallCount {
		b.postpone(newLargeHash(f, o.ExpireAt, &o.Fields))
		return false
	}
	for field, value := range o.Fields.All() {
		b.putField(f, field, value)
	}
	b.putExpire(f, o.ExpireAt)
	return true
}

// HashView is the hash that a key holds, to look at: what changes one is a method of Tx. The zero
// Hash is what a missing key holds, an empty one. It is valid until the key's next change or the
// Tx's end; the fields and values it gives are good forever.
type HashView struct{ Fields *Fields }

// Len is how many fields there are.
func (h HashView) Len() int {
	if h.Fields == nil {
		return 0
	}
	return h.Fields.Len()
}

// Get is the value of a field; ok is false if there is no such field.
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

// All yields the fields and their values: of up to 512 in the order in which they came, of more in
// an order that means nothing.
func (h HashView) All() iter.Seq2[string, string] {
	if h.Fields == nil {
		return func(func(string, string) bool) {}
	}
	return h.Fields.All()
}

// Keep gives the fields and their values as they are now, to be gone through once by one goroutine,
// when the locks are let go: what changes later does not show. It costs next to nothing, but the
// changes that come before that is done copy what they change.
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

// Scan visits about count fields from the cursor on, and returns the cursor to go on from, 0 after
// the last. 0 begins. A field that is there throughout is visited at least once. A hash of up to
// 512 fields is visited whole.
func (h HashView) Scan(cursor uint64, count int, visit func(field, value string)) (next uint64) {
	if h.Fields == nil {
		return 0
	}
	return h.Fields.scan(cursor, count, visit)
}

// Random picks a field, each with the same probability; ok is false if the hash is empty.
func (h HashView) Random(r *rand.Rand) (field, value string, ok bool) {
	if h.Len() == 0 {
		return "", "", false
	}
	p := h.Fields.random(r)
	return p.field, p.value, true
}

// Sample yields n different fields, or all if there are no more than n. Each choice of n has the
// same chance; their order means nothing.
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
