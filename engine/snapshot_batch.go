package engine

import (
	"iter"
	"slices"
	"sync"

	"rlserver/dict"
	"rlserver/zset"
)

// batch is objects as effects, a group for each. Those that are too large wait to be saved in
// parts.
type batch struct {
	effects []Effect
	ends    []int  // of the groups, in effects
	text    []byte // what would change in the keyspace is copied here
	weight  int
	large   []*large
}

// Up to these sizes an object becomes effects at once, under its shard's lock.
const (
	smallCount = 128 // elements of a collection
	smallBytes = 4 << 10
)

// effectWeight is what an effect counts beside its text.
const effectWeight = 64

func (b *batch) full() bool { return b.weight >= stepBytes }

// add takes an object in, under the lock of its shard.
func (b *batch) add(db int, o object) {
	// a name is never written over, nor is a field or its value
	f := Effect{DB: db, Key: Key{Name: bytesOf(o.head().name)}}
	if o.save(b, f) {
		b.end()
	}
}

func (o *stringObject) save(b *batch, f Effect) (whole bool) {
	f.Kind, f.Value, f.ExpireAt = EffectString, b.valueOf(o), o.expireAt
	b.put(f)
	return true
}

func (o *hashObject) save(b *batch, f Effect) (whole bool) {
	if o.fields.len() > smallCount {
		b.postpone(newLargeHash(f, o.expireAt, &o.fields))
		return false
	}
	for field, value := range o.fields.all() {
		b.putField(f, field, value)
	}
	b.putExpire(f, o.expireAt)
	return true
}

func (o *zsetObject) save(b *batch, f Effect) (whole bool) {
	if !small(&o.set) {
		b.postpone(&large{of: f, expireAt: o.expireAt, set: o.set.Clone()})
		return false
	}
	for member, score := range o.set.Ascend(0, o.set.Len()) {
		b.putMember(f, b.copied(member), score)
	}
	b.putExpire(f, o.expireAt)
	return true
}

// putState adds a limiter's state.
func (b *batch) putState(f Effect, o stateObject) (whole bool) {
	f.ExpireAt = o.head().expireAt
	b.put(f)
	o.store(&b.effects[len(b.effects)-1])
	return true
}

// valueOf is a string's value: a copy if it is short, otherwise itself, and the string's next
// change has to copy it if need be.
func (b *batch) valueOf(o *stringObject) []byte {
	if len(o.value) <= smallBytes {
		return b.copied(o.value)
	}
	o.shared = true
	return o.value
}

func (b *batch) copied(text []byte) []byte {
	start := len(b.text)
	b.text = append(b.text, text...)
	return b.text[start:len(b.text):len(b.text)]
}

// small reports whether a sorted set is cheaper to copy than to clone: its owner pays for a clone
// with its next changes.
func small(set *zset.Set) bool {
	if set.Len() > smallCount {
		return false
	}
	size := 0
	for member := range set.Ascend(0, set.Len()) {
		if size += len(member); size > smallBytes {
			return false
		}
	}
	return true
}

func (b *batch) postpone(l *large) {
	b.large = append(b.large, l)
	b.weight += effectWeight
}

func (b *batch) putField(f Effect, field, value string) {
	f.Kind, f.Field, f.Value = EffectHashSet, bytesOf(field), bytesOf(value)
	b.put(f)
}

func (b *batch) putMember(f Effect, member []byte, score float64) {
	f.Kind, f.Field, f.Score = EffectAdd, member, score
	b.put(f)
}

func (b *batch) putExpire(f Effect, at int64) {
	if at != 0 {
		f.Kind, f.ExpireAt = EffectExpire, at
		b.put(f)
	}
}

func (b *batch) put(f Effect) {
	b.effects = append(b.effects, f)
	b.weight += effectWeight + len(f.Key.Name) + len(f.Field) + len(f.Value)
}

// end makes a group of the effects since the last one.
func (b *batch) end() { b.ends = append(b.ends, len(b.effects)) }

func (b *batch) visit(visit func([]Effect)) {
	start := 0
	for _, end := range b.ends {
		if start < end {
			visit(b.effects[start:end])
		}
		start = end
	}
}

// reset empties the batch, but for its room.
func (b *batch) reset() {
	clear(b.effects)
	clear(b.large)
	*b = batch{effects: b.effects[:0], ends: b.ends[:0], text: b.text[:0], large: b.large[:0]}
}

// large is a collection as it was at the snapshot's moment. No lock guards it: what it holds is
// nobody else's, or does not change.
type large struct {
	of       Effect // each effect begins as this one
	expireAt int64

	set  *zset.Set // a clone
	rank int       // of the next member

	pairs  []pair  // the next fields
	frozen *frozen // where more of them are
}

// newLargeHash keeps a hash as it is: the pairs, of a few hundred at most, or a walk through the
// table.
func newLargeHash(of Effect, expireAt int64, h *hash) *large {
	l := &large{of: of, expireAt: expireAt, pairs: slices.Clone(h.few)}
	if h.many != nil {
		l.frozen = h.many.freeze()
	}
	return l
}

// part adds the next elements, and the deadline after the last, as one group, and reports whether
// there are more.
func (l *large) part(b *batch) (more bool) {
	if l.set != nil {
		more = l.members(b)
	} else {
		more = l.fields(b)
	}
	if !more {
		b.putExpire(l.of, l.expireAt)
	}
	b.end()
	return more
}

func (l *large) members(b *batch) (more bool) {
	for member, score := range l.set.Ascend(l.rank, l.set.Len()) {
		if b.full() {
			return true
		}
		b.putMember(l.of, member, score)
		l.rank++
	}
	return false
}

func (l *large) fields(b *batch) (more bool) {
	for ; !b.full(); l.pairs = l.pairs[1:] {
		if len(l.pairs) == 0 && l.frozen != nil {
			l.pairs = l.frozen.next()
		}
		if len(l.pairs) == 0 {
			return false
		}
		b.putField(l.of, l.pairs[0].field, l.pairs[0].value)
	}
	return true
}

func (l *large) close() {
	if l.frozen != nil {
		l.frozen.close()
	}
}

// frozen is the fields of a large hash at one moment, taken step by step while it goes on changing:
// a snapshot of its own. The hash may come under another shard's lock in the meantime, or nobody's,
// so there is one here.
type frozen struct {
	mu sync.Mutex
	passage
	fields *dict.Dict[*pair]
	kept   []pair // from changes
}

// next takes fields: those that changes have handed out, or else some from the table; none at the
// end.
func (z *frozen) next() (pairs []pair) {
	z.mu.Lock()
	defer z.mu.Unlock()
	for len(z.kept) == 0 && !z.over() {
		z.reach(z.fields.Scan(z.cursor, smallCount, func(p *pair) {
			if !z.passesBy(p.field) {
				z.kept = append(z.kept, *p)
			}
		}))
	}
	pairs, z.kept = z.kept, nil
	return pairs
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
	z.reach(0)
	z.kept = nil
}

// freeze begins a walk through the fields as they are now.
func (t *table) freeze() *frozen {
	z := &frozen{fields: &t.Dict}
	t.frozen = append(t.frozen, z)
	return z
}

// hold hands a field that is about to change to the walks that still need it, and locks them until
// release is called after the change.
func (t *table) hold(hash uint64, field []byte) (release func()) {
	walks := t.frozen
	t.frozen = nil
	for _, z := range walks {
		z.mu.Lock()
		if z.over() {
			z.mu.Unlock()
			continue
		}
		t.frozen = append(t.frozen, z)
		if z.overtake(hash, field) {
			if p := t.find(hash, field); p != nil {
				z.kept = append(z.kept, *p)
			}
		}
	}
	held := t.frozen
	return func() {
		for _, z := range held {
			z.mu.Unlock()
		}
	}
}
