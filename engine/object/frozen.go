package object

import (
	"iter"
	"slices"
	"sync"

	"rlserver/internal/dict"
)

// frozen is a walk through the fields of a large hash as they were at one point in time, in steps
// while the hash changes. It has a lock of its own, because the hash may move to another shard
// meanwhile, or be deleted.
type frozen struct {
	mu sync.Mutex
	dict.Passage
	fields *dict.Dict[*pair]
	kept   []pair // saved by changes
	taken  []pair // the result of next
	read   int    // a sum that makes the reads of prefetch count as used
}

// next returns fields: those that changes have saved, otherwise some from the table; none at the
// end. They are valid until the next call.
func (z *frozen) next() (pairs []pair) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for len(z.kept) == 0 && !z.Over() {
		z.Reach(z.fields.Scan(z.Cursor, SmallCount, func(p *pair) {
			if z.Overtaken() == 0 || !z.PassesBy(z.fields.HashOf(p)) {
				z.kept = append(z.kept, *p)
			}
		}))
	}
	clear(z.taken)
	z.kept, z.taken = z.taken[:0], z.kept
	z.prefetch(z.taken)
	return z.taken
}

// prefetch reads the first bytes of fields and values, which are far apart in memory, so that the
// CPU loads them in parallel.
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
	// hold removes them too, but is not called if the hash never changes
	t.Frozen = slices.DeleteFunc(t.Frozen, (*frozen).ended)
	z := &frozen{fields: &t.Dict}
	t.Frozen = append(t.Frozen, z)
	return z
}

// hold saves a field that is about to change in the walks that have not reached it, and locks them
// until release is called after the change.
func (t *table) hold(hash uint64) (release func()) {
	walks := t.Frozen
	t.Frozen = nil
	for _, z := range walks {
		z.mu.Lock()
		if z.Over() {
			z.mu.Unlock()
			continue
		}
		t.Frozen = append(t.Frozen, z)
		if z.Overtake(hash) {
			t.Each(hash, func(p *pair) { z.kept = append(z.kept, *p) })
		}
	}
	held := t.Frozen
	return func() {
		for _, z := range held {
			z.mu.Unlock()
		}
	}
}
