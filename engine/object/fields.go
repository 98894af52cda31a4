package object

import (
	"bytes"
	"iter"
	"math/rand/v2"
	"slices"
	"unsafe"

	"rlserver/internal/dict"
)

// SmallHash is how many fields a small hash of Redis has at most.
const SmallHash = 512

// Fields is the fields of a hash. Up to SmallHash of them are in a slice in the order of insertion,
// as in Redis' small hashes, and are found by their tags; when there are more, all are moved to a
// dict and stay there.
//
//	tags  [ 3f      | a0       | 3f        ]    a byte of each field's hash, for bytes.IndexByte
//	few   [ name ada| age 36   | mail a@b.c]
type Fields struct {
	hasher *dict.Hasher
	tags   []byte
	few    []pair
	Many   *table // nil for a small hash
	text   int    // bytes allocated for the text of all fields and values
}

func newFields(h *dict.Hasher) Fields { return Fields{hasher: h} }

type pair struct{ field, value string }

// table holds the fields of a large hash.
type table struct {
	dict.Dict[*pair]
	// walks through earlier states, which changes save fields for; mostly none
	Frozen []*frozen
}

func (t *table) find(sum uint64, field []byte) *pair {
	p, _ := t.Find(sum, func(p *pair) bool { return p.field == string(field) })
	return p
}

// Len returns the number of fields.
func (h *Fields) Len() int {
	if h.Many != nil {
		return h.Many.Len()
	}
	return len(h.few)
}

// Find returns the pair of a field; nil if it is missing. The pair is valid until the next change.
func (h *Fields) Find(field []byte) *pair { return h.findHashed(h.hasher.Sum(field), field) }

func (h *Fields) findHashed(sum uint64, field []byte) *pair {
	if h.Many != nil {
		return h.Many.find(sum, field)
	}
	if i := h.index(sum, field); i >= 0 {
		return &h.few[i]
	}
	return nil
}

// index returns the index of a field in few; -1 if it is missing.
func (h *Fields) index(sum uint64, field []byte) int {
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

// Set sets the value of a field. Both are copied.
func (h *Fields) Set(field, value []byte) {
	sum := h.hasher.Sum(field)
	if h.Many != nil && len(h.Many.Frozen) > 0 {
		defer h.Many.hold(sum)()
	}
	if p := h.findHashed(sum, field); p != nil {
		h.text += allocated(len(value)) - allocated(len(p.value))
		p.value = string(value)
		return
	}
	h.text += allocated(len(field)) + allocated(len(value))
	if len(h.few) == SmallHash {
		h.grow()
	}
	if h.Many != nil {
		h.Many.Insert(sum, &pair{string(field), string(value)})
	} else {
		h.tags = append(h.tags, byte(sum))
		h.few = append(h.few, pair{string(field), string(value)})
	}
}

func (h *Fields) grow() {
	h.Many = h.newTable()
	for _, p := range h.few {
		h.Many.Insert(h.hasher.Sum(BytesOf(p.field)), &pair{p.field, p.value})
	}
	h.tags, h.few = nil, nil
}

func (h *Fields) newTable() *table {
	hasher := h.hasher
	return &table{Dict: *dict.New(func(p *pair) uint64 { return hasher.Sum(BytesOf(p.field)) })}
}

// Remove removes a field, if it exists.
func (h *Fields) Remove(field []byte) {
	sum := h.hasher.Sum(field)
	if h.Many != nil && len(h.Many.Frozen) > 0 {
		defer h.Many.hold(sum)()
	}
	if p := h.findHashed(sum, field); p != nil {
		h.text -= allocated(len(p.field)) + allocated(len(p.value))
	}
	if h.Many != nil {
		h.Many.Remove(sum, func(p *pair) bool { return p.field == string(field) })
	} else if i := h.index(sum, field); i >= 0 {
		h.tags = slices.Delete(h.tags, i, i+1)
		h.few = slices.Delete(h.few, i, i+1)
	}
}

// weight returns how many bytes the fields take in memory besides their struct.
func (h *Fields) weight() int64 {
	if h.Many != nil {
		return int64(h.Len()*fieldWeight + h.text)
	}
	return int64(cap(h.few)*int(unsafe.Sizeof(pair{})) + h.text)
}

// All yields the fields and their values.
func (h *Fields) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		if h.Many != nil {
			for p := range h.Many.All() {
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
func (h *Fields) scan(cursor uint64, count int, visit func(field, value string)) (next uint64) {
	if h.Many != nil {
		return h.Many.Scan(cursor, count, func(p *pair) { visit(p.field, p.value) })
	}
	for _, p := range h.few {
		visit(p.field, p.value)
	}
	return 0
}

// random returns a random field; the hash is not empty.
func (h *Fields) random(r *rand.Rand) *pair {
	if h.Many != nil {
		p, _ := h.Many.Random(r)
		return p
	}
	return &h.few[r.IntN(len(h.few))]
}

// sample yields n different fields, fewer than there are, in no particular order. Each set of n
// fields has the same probability.
func (h *Fields) sample(r *rand.Rand, n int) iter.Seq2[string, string] {
	if h.Many != nil && n < h.Len()/4 {
		return h.draw(r, n)
	}
	return h.pass(r, n)
}

// pass visits all fields and selects each with the probability wanted/left: algorithm S of Knuth,
// The Art of Computer Programming, volume 2, 3.4.2.
func (h *Fields) pass(r *rand.Rand, wanted int) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		left, wanted := h.Len(), wanted
		for field, value := range h.All() {
			if r.IntN(left) < wanted {
				if wanted--; !yield(field, value) || wanted == 0 {
					return
				}
			}
			left--
		}
	}
}

// draw draws random fields until it has n different ones. This is fast if n is small compared to
// the hash.
func (h *Fields) draw(r *rand.Rand, n int) iter.Seq2[string, string] {
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

// Clone copies the fields, but not their text.
func (h *Fields) Clone() Fields {
	c := Fields{hasher: h.hasher, tags: slices.Clone(h.tags), few: slices.Clone(h.few), text: h.text}
	if h.Many != nil {
		c.Many = c.newTable()
		for p := range h.Many.All() {
			c.Many.Insert(c.hasher.Sum(BytesOf(p.field)), &pair{p.field, p.value})
		}
	}
	return c
}
