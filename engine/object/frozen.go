package object

import (
	"iter"
	"slices"
	"sync"

	"rlserver/dict"
)

// frozen is the fields of a large hash at one moment, taken step by step while it goes on changing:
// a snapshot of its own. The hash may come under another shard's lock in the meantime, or nobody's,
// so there is one here.
type frozen struct {
	mu sync.Mutex
	dict.Passage
	fields *dict.Dict[*pair]
	kept   []pair // from changes
	taken  []pair // what next has returned
	read   int    // the sum of bytes that were read so that a cache has them
}

// next takes fields: those that changes have handed out, or else some from the table; none at the
// end. They are valid until the next call.
func (z *frozen) next() (pairs []pair) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for len(z.kept) == 0 && !z.Over() {
		z.Reach(z.fields.Scan(z.Cursor, SmallCount, func(p *pair) {
			if len(z.Overtaken) == 0 || !z.PassesBy(p.field) {
				z.kept = append(z.kept, *p)
			}
		}))
	}
	clear(z.taken)
	z.kept, z.taken = z.taken[:0], z.kept
	z.prefetch(z.taken)
	return z.taken
}

// prefetch reads the first bytes of fields and values. They are far apart in memory: read side by
// side here, they do not have to be waited for one after the other.
func (z *frozen) prefetch(pairs []pair) {
	sum := 0
	for i := range pairs {
		if p := &pairs[i]; p.field != "" && p.value != "" {
			sum += int(p.field[0]) + int(p.value[0])
		}
	}
	z.read += sum
}

// all yields the fields.
func (z *frozen) all() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		defer z.close()
		for pairs := z.next(); len(pairs) > 0; pairs = z.next() {
			for _, p := range pairs {
				if !yield(p.field, p.value) {
					return
				}
			}
		}
	}
}

func (z *frozen) close() {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.Reach(0)
	z.kept, z.taken = nil, nil
}

// ended reports whether the walk is over.
func (z *frozen) ended() bool {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.Over()
}

// freeze begins a walk through the fields as they are now.
func (t *table) freeze() *frozen {
	// a hash that never changes has no other end
	t.Frozen = slices.DeleteFunc(t.Frozen, (*frozen).ended)
	z := &frozen{fields: &t.Dict}
	t.Frozen = append(t.Frozen, z)
	return z
}

// hold hands a field that is about to change to the walks that still need it, and locks them until
// release is called after the change.
func (t *table) hold(hash uint64, field []byte) (release func()) {
	walks := t.Frozen
	t.Frozen = nil
	for _, z := range walks {
		z.mu.Lock()
		if z.Over() {
			z.mu.Unlock()
			continue
		}
		t.Frozen = append(t.Frozen, z)
		if z.Overtake(hash, field) {
			if p := t.find(hash, field); p != nil {
				z.kept = append(z.kept, *p)
			}
		}
	}
	held := t.Frozen
	return func() {
		for _, z := range held {
			z.mu.Unlock()
		}
	}
}
