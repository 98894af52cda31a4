package engine

import (
	"iter"
	"math/rand/v2"
	"slices"

	"rlserver/dict"
)

// hash holds the fields of a hash. Up to smallHash of them stand in a slice in the order in which they came, as
// Redis' small hashes do and as clients print them; more stand in a dict, and stay there.
type hash struct {
	hasher *dict.Hasher
	few    []pair
	many   *dict.Dict[*pair]
}

// smallHash and smallValue are where Redis' listpack hashes end too.
const (
	smallHash  = 128
	smallValue = 64
)

type pair struct{ field, value string }

func newHash(h *dict.Hasher) hash { return hash{hasher: h} }

func (h *hash) len() int {
	if h.many != nil {
		return h.many.Len()
	}
	return len(h.few)
}

func (h *hash) find(field []byte) *pair {
	if h.many != nil {
		p, _ := h.many.Find(h.hasher.Sum(field), func(p *pair) bool { return p.field == string(field) })
		return p
	}
	for i := range h.few {
		if h.few[i].field == string(field) {
			return &h.few[i]
		}
	}
	return nil
}

func (h *hash) set(field, value []byte) {
	if p := h.find(field); p != nil {
		p.value = string(value)
	} else if h.many != nil {
		h.many.Insert(h.hasher.Sum(field), &pair{string(field), string(value)})
	} else {
		h.few = append(h.few, pair{string(field), string(value)})
	}
	if h.many == nil && (len(h.few) > smallHash || len(field) > smallValue || len(value) > smallValue) {
		h.grow()
	}
}

func (h *hash) grow() {
	h.many = dict.New(func(p *pair) uint64 { return h.hasher.Sum(bytesOf(p.field)) })
	for _, p := range h.few {
		h.many.Insert(h.hasher.Sum(bytesOf(p.field)), &pair{p.field, p.value})
	}
	h.few = nil
}

func (h *hash) remove(field []byte) {
	if h.many != nil {
		h.many.Remove(h.hasher.Sum(field), func(p *pair) bool { return p.field == string(field) })
		return
	}
	h.few = slices.DeleteFunc(h.few, func(p pair) bool { return p.field == string(field) })
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
func (h *hash) random(r *rand.Rand) (field, value string) {
	if h.many != nil {
		p, _ := h.many.Random(r)
		return p.field, p.value
	}
	p := h.few[r.IntN(len(h.few))]
	return p.field, p.value
}

func (h *hash) clone() hash {
	c := hash{hasher: h.hasher, few: slices.Clone(h.few)}
	if h.many != nil {
		c.many = dict.New(func(p *pair) uint64 { return c.hasher.Sum(bytesOf(p.field)) })
		for p := range h.many.All() {
			c.many.Insert(c.hasher.Sum(bytesOf(p.field)), &pair{p.field, p.value})
		}
	}
	return c
}
