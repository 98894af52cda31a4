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

// EffectWeight is the weight of an effect in bytes, without its text.
const EffectWeight = 64

// Batch is objects converted to effects, a group for each. Large objects are postponed, to be saved
// in parts.
type Batch struct {
	Effects []effect.Effect
	Ends    []int  // of the groups, in effects
	Text    []byte // copies of text that may change in the keyspace
	Weight  int
	Large   []*Large

	adding bool // see Full
}

// Full reports whether the batch has reached the size of one step. While Add adds an object, it is
// never full: an object is added whole or postponed.
func (b *Batch) Full() bool { return b.fullWith(0) }

// fullWith is Full for a batch with some more bytes.
func (b *Batch) fullWith(more int) bool { return !b.adding && b.Weight+more >= StepBytes }

// Add adds an object, under the lock of its shard.
func (b *Batch) Add(db int, o Object) {
	// fields and their values are never overwritten, so they need no copy, nor do names except
	// those of records
	f := effect.Effect{DB: db, Key: effect.Key{Name: BytesOf(o.Name())}}
	b.adding = true
	if o.save(b, f) {
		b.End()
	}
	b.adding = false
}

// putState adds a limiter's state.
func (b *Batch) putState(f effect.Effect, o State) (whole bool) {
	f.Key.Name, f.ExpireAt = b.copied(f.Key.Name), o.Deadline()
	b.Put(f)
	o.store(&b.Effects[len(b.Effects)-1])
	return true
}

// valueOf returns a string's value: a copy if it is short, otherwise the value itself, which the
// string's next change copies if it would overwrite it.
func (b *Batch) valueOf(o *String) []byte {
	if len(o.Value) <= SmallBytes {
		return b.copied(o.Value)
	}
	o.shared = true
	return o.Value
}

func (b *Batch) copied(text []byte) []byte {
	start := len(b.Text)
	b.Text = append(b.Text, text...)
	return b.Text[start:len(b.Text):len(b.Text)]
}

func (b *Batch) postpone(l *Large) {
	b.Large = append(b.Large, l)
	b.Weight += EffectWeight
}

func (b *Batch) putField(f effect.Effect, field, value string) {
	f.Kind, f.Field, f.Value = effect.HashSet, BytesOf(field), BytesOf(value)
	b.Put(f)
}

// putHits adds the hits of a part of a log with a deadline.
func (b *Batch) putHits(f effect.Effect, expireAt int64, log *zset.Set, part int) {
	start, last := len(b.Text), int64(0)
	log.VisitHits(part, func(at int64, seq, n uint64) {
		for h := range effect.Split(at, seq, n) {
			b.Text = effect.AppendRun(b.Text, last, h)
			last = at
		}
	})
	if len(b.Text) > start {
		f.Kind, f.Value, f.ExpireAt = effect.Runs, b.Text[start:len(b.Text):len(b.Text)], expireAt
		b.Put(f)
	}
}

// putCalls adds the calls of a part of a log with a deadline.
func (b *Batch) putCalls(f effect.Effect, expireAt int64, log *zset.Set, part int) {
	log.VisitCalls(part, func(at int64, id []byte, lo, n uint64) {
		f.Kind, f.Field, f.ExpireAt = effect.Call, b.copied(id), expireAt
		for f.Hits = range effect.Split(at, lo, n) {
			b.Put(f)
		}
	})
}

func (b *Batch) putMember(f effect.Effect, member []byte, score float64) {
	f.Kind, f.Field, f.Score = effect.Add, member, score
	b.Put(f)
}

// putElements adds elements of a type, from a rank on, until the batch is full, and returns
// how many.
func (b *Batch) putElements(f effect.Effect, t Type, rank int, elements iter.Seq[[]byte]) (n int) {
	start := len(b.Text)
	for e := range elements {
		b.Text = effect.AppendElement(b.Text, e)
		if n++; b.fullWith(len(b.Text) - start) {
			break
		}
	}
	f.Kind, f.Field, f.Value = effect.Insert, BytesOf(string(t)), b.Text[start:len(b.Text):len(b.Text)]
	f.Lo, f.Hi = rank, rank+n
	b.Put(f)
	return n
}

func (b *Batch) putExpire(f effect.Effect, at int64) {
	if at != 0 {
		f.Kind, f.ExpireAt = effect.Expire, at
		b.Put(f)
	}
}

// Put adds an effect to the current group.
func (b *Batch) Put(f effect.Effect) {
	b.Effects = append(b.Effects, f)
	b.Weight += EffectWeight + len(f.Key.Name) + len(f.Field) + len(f.Value)
}

// End ends the current group.
func (b *Batch) End() { b.Ends = append(b.Ends, len(b.Effects)) }

// Visit calls visit for each group.
func (b *Batch) Visit(visit func([]effect.Effect)) {
	start := 0
	for _, end := range b.Ends {
		if start < end {
			visit(b.Effects[start:end])
		}
		start = end
	}
}

// Reset empties the batch, and keeps its memory.
func (b *Batch) Reset() {
	clear(b.Effects)
	clear(b.Large)
	*b = Batch{Effects: b.Effects[:0], Ends: b.Ends[:0], Text: b.Text[:0], Large: b.Large[:0]}
}

// Large is a collection as it was at the time of the snapshot. It needs no lock: its content is not
// shared, or does not change.
type Large struct {
	of       effect.Effect // each effect is a copy of this one
	expireAt int64

	next func(b *Batch, f effect.Effect) (more bool) // adds the next elements
	// the walk that returns them; nil: there is none
	frozen *frozen
}

// newLarge preserves the fields of a hash or set as they are: a copy of up to SmallHash pairs, or a
// walk through the table. put adds the first of the pairs to a batch, and returns how many.
func newLarge(
	of effect.Effect, expireAt int64, h *Fields, put func(*Batch, effect.Effect, []pair) int,
) *Large {
	l, pairs := &Large{of: of, expireAt: expireAt}, slices.Clone(h.few)
	if h.Many != nil {
		l.frozen = h.Many.freeze()
	}
	l.next = func(b *Batch, f effect.Effect) (more bool) {
		for !b.Full() {
			if len(pairs) == 0 && l.frozen != nil {
				pairs = l.frozen.next()
			}
			if len(pairs) == 0 {
				return false
			}
			pairs = pairs[put(b, f, pairs):]
		}
		return true
	}
	return l
}

// Part adds the next elements, and the deadline after the last, as one group, and reports whether
// there are more.
func (l *Large) Part(b *Batch) (more bool) {
	if more = l.next(b, l.of); !more {
		b.putExpire(l.of, l.expireAt)
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
