package engine

import (
	"bytes"
	"iter"
	"math/rand/v2"
	"slices"

	"rlserver/dict"
)

// Hash is the hash that a key holds, to look at: what changes one is a method of Tx. The zero Hash
// is what a missing key holds, an empty one. It is valid until the key's next change or the Tx's
// end; the fields and values it gives are good forever.
type Hash struct{ fields *hash }

// Hash finds a key's hash.
func (tx *Tx) Hash(k Key) (Hash, error) {
	_, h, err := tx.hash(k)
	return h, err
}

// hash is Hash for callers that apply effects to the object.
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

// All yields the fields and their values: of up to 512 in the order in which they came, of more in
// an order that means nothing.
func (h Hash) All() iter.Seq2[string, string] {
	if h.fields == nil {
		return func(func(string, string) bool) {}
	}
	return h.fields.all()
}

// Keep gives the fields and their values as they are now, to be gone through once by one goroutine,
// when the locks are let go: what changes later does not show. It costs next to nothing, but the
// changes that come before that is done copy what they change.
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

// Scan visits about count fields from the cursor on, and returns the cursor to go on from, 0 after
// the last. 0 begins. A field that is there throughout is visited at least once. A hash of up to
// 512 fields is visited whole.
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

// Sample yields n different fields, or all if there are no more than n. Each choice of n has the
// same chance; their order means nothing.
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

// HSet gives fields their values, which alternate in pairs, and returns how many fields are
// new. A missing key is an empty hash.
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

// HDel removes fields and returns how many of them there were. A hash without fields is no key.
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

// hash holds the fields of a hash. Up to smallHash of them are side by side in the order in which
// they came, as in Redis' small hashes, and are found by their tags; when there are more, all move
// to a dict and stay there.
//
//	tags  [ 3f      | a0       | 3f        ]    a byte of each field's hash, for bytes.IndexByte
//	few   [ name ada| age 36   | mail a@b.c]
type hash struct {
	hasher *dict.Hasher
	tags   []byte
	few    []pair
	many   *table // nil while they are few
	text   int    // bytes set aside for the text of all fields and values
}

// table is the fields of a large hash.
type table struct {
	dict.Dict[*pair]
	// walks through the fields as they were earlier, notified of changes; mostly none
	frozen []*frozen
}

// smallHash is how many fields Redis' small hashes have at most.
const smallHash = 512

type pair struct{ field, value string }

func newHash(h *dict.Hasher) hash { return hash{hasher: h} }

func (h *hash) len() int {
	if h.many != nil {
		return h.many.Len()
	}
	return len(h.few)
}

// find gives the pair of a field, nil if there is none. It holds until the next change.
func (h *hash) find(field []byte) *pair { return h.findHashed(h.hasher.Sum(field), field) }

func (h *hash) findHashed(sum uint64, field []byte) *pair {
	if h.many != nil {
		return h.many.find(sum, field)
	}
	if i := h.index(sum, field); i >= 0 {
		return &h.few[i]
	}
	return nil
}

func (t *table) find(sum uint64, field []byte) *pair {
	p, _ := t.Find(sum, func(p *pair) bool { return p.field == string(field) })
	return p
}

// index is the index of a field in few, -1 if it is not there.
func (h *hash) index(sum uint64, field []byte) int {
	for i := 0; ; i++ {
		next := bytes.IndexByte(h.tags[i:], byte(sum))
		if next < 0 {
			return -1
		}
		if i += next; h.few[i].field == string(field) {
			return i
		}
	}
}

func (h *hash) set(field, value []byte) {
	sum := h.hasher.Sum(field)
	if h.many != nil && len(h.many.frozen) > 0 {
		defer h.many.hold(sum, field)()
	}
	if p := h.findHashed(sum, field); p != nil {
		h.text += allocated(len(value)) - allocated(len(p.value))
		p.value = string(value)
		return
	}
	h.text += allocated(len(field)) + allocated(len(value))
	if len(h.few) == smallHash {
		h.grow()
	}
	if h.many != nil {
		h.many.Insert(sum, &pair{string(field), string(value)})
	} else {
		h.tags = append(h.tags, byte(sum))
		h.few = append(h.few, pair{string(field), string(value)})
	}
}

func (h *hash) grow() {
	h.many = h.newTable()
	for _, p := range h.few {
		h.many.Insert(h.hasher.Sum(bytesOf(p.field)), &pair{p.field, p.value})
	}
	h.tags, h.few = nil, nil
}

func (h *hash) newTable() *table {
	hasher := h.hasher
	return &table{Dict: *dict.New(func(p *pair) uint64 { return hasher.Sum(bytesOf(p.field)) })}
}

func (h *hash) remove(field []byte) {
	sum := h.hasher.Sum(field)
	if h.many != nil && len(h.many.frozen) > 0 {
		defer h.many.hold(sum, field)()
	}
	if p := h.findHashed(sum, field); p != nil {
		h.text -= allocated(len(p.field)) + allocated(len(p.value))
	}
	if h.many != nil {
		h.many.Remove(sum, func(p *pair) bool { return p.field == string(field) })
	} else if i := h.index(sum, field); i >= 0 {
		h.tags = slices.Delete(h.tags, i, i+1)
		h.few = slices.Delete(h.few, i, i+1)
	}
}

// all yields the fields and their values.
func (h *hash) all() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if h.many != nil {
			for p := range h.many.All() {
				if !yield(p.field, p.value) {
					return
				}
			}
		}
		for _, p := range h.few {
			if !yield(p.field, p.value) {
				return
			}
		}
	}
}

// scan visits about count fields from the cursor on; a small hash is visited whole.
func (h *hash) scan(cursor uint64, count int, visit func(field, value string)) (next uint64) {
	if h.many != nil {
		return h.many.Scan(cursor, count, func(p *pair) { visit(p.field, p.value) })
	}
	for _, p := range h.few {
		visit(p.field, p.value)
	}
	return 0
}

// random picks one field; the hash is not empty.
func (h *hash) random(r *rand.Rand) *pair {
	if h.many != nil {
		p, _ := h.many.Random(r)
		return p
	}
	return &h.few[r.IntN(len(h.few))]
}

// sample yields n different fields, fewer than there are. Each choice of n has the same chance;
// their order means nothing.
func (h *hash) sample(r *rand.Rand, n int) iter.Seq2[string, string] {
	if h.many != nil && n < h.len()/4 {
		return h.draw(r, n)
	}
	return h.pass(r, n)
}

// pass goes through all fields and takes each with the chance that as many are taken from the rest
// as are still wanted: algorithm S of Knuth, The Art of Computer Programming, volume 2, 3.4.2.
func (h *hash) pass(r *rand.Rand, wanted int) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		left, wanted := h.len(), wanted
		for field, value := range h.all() {
			if r.IntN(left) < wanted {
				if wanted--; !yield(field, value) || wanted == 0 {
					return
				}
			}
			left--
		}
	}
}

// draw picks fields again and again until it has n different ones, which few of a large hash soon
// are.
func (h *hash) draw(r *rand.Rand, n int) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		drawn := make(map[*pair]struct{}, n)
		for len(drawn) < n {
			p := h.random(r)
			if _, again := drawn[p]; again {
				continue
			}
			drawn[p] = struct{}{}
			if !yield(p.field, p.value) {
				return
			}
		}
	}
}

func (h *hash) clone() hash {
	c := hash{hasher: h.hasher, tags: slices.Clone(h.tags), few: slices.Clone(h.few), text: h.text}
	if h.many != nil {
		c.many = c.newTable()
		for p := range h.many.All() {
			c.many.Insert(c.hasher.Sum(bytesOf(p.field)), &pair{p.field, p.value})
		}
	}
	return c
}
