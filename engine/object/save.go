package object

import (
	"iter"
	"slices"

	"rlserver/engine/effect"
	"rlserver/zset"
)

// A Step releases the lock after this number of keys or bytes, or a little later: it visits whole
// buckets of a dict.
const (
	StepKeys  = 64
	StepBytes = 64 << 10
)

// postponed is how many bytes of a step a large object that is postponed counts for.
const postponed = 64

// Batch is objects converted to encoded effects, a group for each. Large objects are postponed, to
// be saved in parts.
type Batch struct {
	encoded []byte
	ends    []int // of the groups, in encoded
	Large   []*Large

	f       effect.Effect // of the object that is being saved, with its database and key
	value   []byte        // of f
	adding  bool          // see Full
	effects []effect.Effect
}

// Save calls visit with the effects of objects of a database, those of large ones in parts.
func Save(db int, objects iter.Seq[Object], visit func([]effect.Effect)) {
	var b, part Batch
	for o := range objects {
		b.Add(db, o)
		for _, l := range b.Large {
			for more := true; more; {
				more = l.Part(&part)
				part.Visit(visit)
				part.Reset()
			}
			l.Close()
		}
		b.Visit(visit)
		b.Reset()
	}
}

// Full reports whether the batch has reached the size of one step. While Add adds an object, it is
// never full: an object is added whole or postponed.
func (b *Batch) Full() bool { return b.fullWith(0) }

// fullWith is Full for a batch with some more bytes.
func (b *Batch) fullWith(more int) bool { return !b.adding && b.Size()+more >= StepBytes }

// Size returns the bytes of the effects, and something for each large object.
func (b *Batch) Size() int { return len(b.encoded) + postponed*len(b.Large) }

// Add adds an object, under the lock of its shard.
func (b *Batch) Add(db int, o Object) {
	b.begin(db, BytesOf(o.Name()))
	b.adding = true
	if o.save(b) {
		b.End()
	}
	b.adding = false
}

// begin begins the effects on a key.
func (b *Batch) begin(db int, name []byte) {
	b.f = effect.Effect{DB: db, Key: effect.Key{Name: name}}
}

// isLarge reports whether an object with so many elements and bytes is postponed, as encoding it
// would take long.
func (b *Batch) isLarge(elements, bytes int) bool {
	return elements > SmallCount || bytes+len(b.f.Key.Name) > SmallBytes
}

// postpone adds a large object: next adds its next elements. Its name must not be overwritten.
func (b *Batch) postpone(expireAt int64, next func(b *Batch) (more bool)) *Large {
	l := &Large{db: b.f.DB, name: b.f.Key.Name, expireAt: expireAt, next: next}
	b.Large = append(b.Large, l)
	return l
}

// putState adds a limiter's state.
func (b *Batch) putState(o State) (whole bool) {
	b.f.ExpireAt = o.Deadline()
	o.store(&b.f)
	b.put(b.f.Kind)
	return true
}

func (b *Batch) putString(value []byte, expireAt int64) {
	b.f.Value, b.f.ExpireAt = value, expireAt
	b.put(effect.String)
}

func (b *Batch) putField(field, value string) {
	b.f.Field, b.f.Value = BytesOf(field), BytesOf(value)
	b.put(effect.HashSet)
}

// putHits adds the hits of a part of a log.
func (b *Batch) putHits(log *zset.Set, part int) {
	last := int64(0)
	b.value = b.value[:0]
	log.VisitHits(part, func(at int64, seq, n uint64) {
		for h := range effect.Split(at, seq, n) {
			b.value = effect.AppendRun(b.value, last, h)
			last = at
		}
	})
	if len(b.value) > 0 {
		b.f.Value = b.value
		b.put(effect.Runs)
	}
}

// putCalls adds the calls of a part of a log with a deadline.
func (b *Batch) putCalls(expireAt int64, log *zset.Set, part int) {
	log.VisitCalls(part, func(at int64, id []byte, lo, n uint64) {
		b.f.Field, b.f.ExpireAt = id, expireAt
		for b.f.Hits = range effect.Split(at, lo, n) {
			b.put(effect.Call)
		}
	})
}

func (b *Batch) putMember(member []byte, score float64) {
	b.f.Field, b.f.Score = member, score
	b.put(effect.Add)
}

// putElements adds elements of a type, from a rank on, until the batch is full, and returns
// how many.
func (b *Batch) putElements(t Type, rank int, elements iter.Seq[[]byte]) (n int) {
	b.value = b.value[:0]
	for e := range elements {
		b.value = effect.AppendElement(b.value, e)
		if n++; b.fullWith(len(b.value)) {
			break
		}
	}
	b.f.Field, b.f.Value = BytesOf(string(t)), b.value
	b.f.Lo, b.f.Hi = rank, rank+n
	b.put(effect.Insert)
	return n
}

func (b *Batch) putExpire(at int64) {
	if at != 0 {
		b.f.ExpireAt = at
		b.put(effect.Expire)
	}
}

func (b *Batch) put(k effect.Kind) {
	b.f.Kind = k
	b.Put(&b.f)
}

// Put adds an effect to the current group.
func (b *Batch) Put(f *effect.Effect) { b.encoded = effect.Append(b.encoded, f) }

// End ends the current group.
func (b *Batch) End() { b.ends = append(b.ends, len(b.encoded)) }

// VisitEncoded calls visit for each group, as effect.Append has written it.
func (b *Batch) VisitEncoded(visit func(group []byte)) {
	start := 0
	for _, end := range b.ends {
		if start < end {
			visit(b.encoded[start:end:end])
		}
		start = end
	}
}

// Visit calls visit for each group. The effects are valid until it returns.
func (b *Batch) Visit(visit func([]effect.Effect)) {
	b.VisitEncoded(func(group []byte) {
		r := effect.Reader{Rest: group}
		for b.effects = b.effects[:0]; len(r.Rest) > 0 && r.Err == nil; {
			b.effects = r.Append(b.effects)
		}
		visit(b.effects)
	})
}

// Reset empties the batch, and keeps its memory if it is not large.
func (b *Batch) Reset() {
	clear(b.Large)
	clear(b.effects)
	*b = Batch{
		encoded: reuse(b.encoded), ends: b.ends[:0], Large: b.Large[:0], value: reuse(b.value), effects: b.effects[:0],
	}
}

func reuse(b []byte) []byte {
	if cap(b) > 4*StepBytes {
		return nil
	}
	return b[:0]
}

// Large is an object as it was at the time of the snapshot. It needs no lock: its content is not
// shared, or does not change.
type Large struct {
	db       int
	name     []byte
	expireAt int64

	next func(b *Batch) (more bool) // adds the next elements
	// the walk that returns them; nil: there is none
	frozen *frozen
}

// postponeFields preserves the fields of a hash or set as they are: a copy of up to SmallHash
// pairs, or a walk through the table. put adds the first of the pairs to a batch, and returns how
// many.
func (b *Batch) postponeFields(expireAt int64, h *Fields, put func(*Batch, []pair) int) {
	pairs := slices.Clone(h.few)
	var walk *frozen
	if h.Many != nil {
		walk = h.Many.freeze()
	}
	b.postpone(expireAt, func(b *Batch) (more bool) {
		for !b.Full() {
			if len(pairs) == 0 && walk != nil {
				pairs = walk.next()
			}
			if len(pairs) == 0 {
				return false
			}
			pairs = pairs[put(b, pairs):]
		}
		return true
	}).frozen = walk
}

// Part adds the next elements, and the deadline after the last, as one group, and reports whether
// there are more.
func (l *Large) Part(b *Batch) (more bool) {
	b.begin(l.db, l.name)
	if more = l.next(b); !more {
		b.putExpire(l.expireAt)
	}
	b.End()
	return more
}

// Close ends the walk through a hash or set.
func (l *Large) Close() {
	if l.frozen != nil {
		l.frozen.close()
	}
}
