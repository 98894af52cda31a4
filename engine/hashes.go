package engine

import (
	"iter"
	"math/rand/v2"
	"slices"
)

// Hash is the hash that a key holds, to look at: what changes one is a method of Tx. The zero Hash is what a missing key holds,
// an empty one. It is good until the key's next change or the Tx's end; the fields and values it gives are good for ever.
type Hash struct{ fields *hash }

// Hash finds a key's hash.
func (tx *Tx) Hash(k Key) (Hash, error) {
	_, h, err := tx.hash(k)
	return h, err
}

// hash is Hash for who goes on to apply effects to the object.
func (tx *Tx) hash(k Key) (object, Hash, error) {
	o := tx.lookup(k)
	h, err := as[*hashObject](o)
	if h == nil {
		return o, Hash{}, err
	}
	return o, Hash{&h.fields}, nil
}

// hashIn is the hash of an object, or of none.
func hashIn(o object) Hash {
	if h, ok := o.(*hashObject); ok {
		return Hash{&h.fields}
	}
	return Hash{}
}

// Len is how many fields there are.
func (h Hash) Len() int {
	if h.fields == nil {
		return 0
	}
	return h.fields.len()
}

// Get is the value of a field; ok is false if there is no such field.
func (h Hash) Get(field []byte) (value string, ok bool) {
	if h.fields == nil {
		return "", false
	}
	p := h.fields.find(field)
	if p == nil {
		return "", false
	}
	return p.value, true
}

// All yields the fields and their values: of up to 512 in the order in which they came, of more in an order that means nothing.
func (h Hash) All() iter.Seq2[string, string] {
	if h.fields == nil {
		return func(func(string, string) bool) {}
	}
	return h.fields.all()
}

// Keep gives the fields and their values as they are now, to be gone through once by one goroutine, when the locks are let go: what changes later does
// not show. It costs next to nothing, but the changes that come before that is done copy what they change.
func (h Hash) Keep() iter.Seq2[string, string] {
	if h.fields == nil || h.fields.many == nil {
		few := Hash{}
		if h.fields != nil {
			few.fields = &hash{few: slices.Clone(h.fields.few)}
		}
		return few.All()
	}
	return h.fields.many.freeze().all()
}

// Scan visits about count fields from the cursor on, and returns the cursor to go on from, 0 after the last. 0 begins.
// A field that is there throughout is visited at least once. A hash of up to 512 fields is visited whole.
func (h Hash) Scan(cursor uint64, count int, visit func(field, value string)) (next uint64) {
	if h.fields == nil {
		return 0
	}
	return h.fields.scan(cursor, count, visit)
}

// Random picks a field, each with the same chance; ok is false if there is none.
func (h Hash) Random(r *rand.Rand) (field, value string, ok bool) {
	if h.Len() == 0 {
		return "", "", false
	}
	p := h.fields.random(r)
	return p.field, p.value, true
}

// Sample yields n different fields, or all if there are no more than n. Each choice of n has the same chance; their order means nothing.
func (h Hash) Sample(r *rand.Rand, n int64) iter.Seq2[string, string] {
	if n >= int64(h.Len()) {
		return h.All()
	}
	return h.fields.sample(r, int(n))
}

// Pick yields a field n times, each time any with the same chance; nothing if there is none.
func (h Hash) Pick(r *rand.Rand, n int) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for range n {
			field, value, ok := h.Random(r)
			if !ok || !yield(field, value) {
				return
			}
		}
	}
}

// HSet gives fields their values, which stand by turns in pairs, and tells how many fields are new. A missing key is an empty hash.
func (tx *Tx) HSet(k Key, pairs [][]byte) (added int, err error) {
	o, h, err := tx.hash(k)
	if err != nil {
		return 0, err
	}
	for ; len(pairs) > 1; pairs = pairs[2:] {
		old, exists := h.Get(pairs[0])
		if exists && old == string(pairs[1]) {
			continue
		}
		if !exists {
			added++
		}
		o = tx.apply(o, &Effect{Kind: EffectHashSet, Key: k, Field: pairs[0], Value: pairs[1]})
		h = hashIn(o)
	}
	return added, nil
}

// HDel removes fields and tells how many of them there were. A hash without fields is no key.
func (tx *Tx) HDel(k Key, fields [][]byte) (removed int, err error) {
	o, h, err := tx.hash(k)
	if err != nil {
		return 0, err
	}
	for _, field := range fields {
		if _, exists := h.Get(field); !exists {
			continue
		}
		o = tx.apply(o, &Effect{Kind: EffectHashDelete, Key: k, Field: field})
		h = hashIn(o)
		removed++
	}
	return removed, nil
}
