package object

import (
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
}

// Full reports whether the batch has reached the size of one step.
func (b *Batch) Full() bool { return b.Weight >= StepBytes }

// Add adds an object, under the lock of its shard.
func (b *Batch) Add(db int, o Object) {
	// names, fields and their values are never overwritten, so they need no copy
	f := effect.Effect{DB: db, Key: effect.Key{Name: BytesOf(o.Head().Name)}}
	if o.save(b, f) {
		b.End()
	}
}

// putState adds a limiter's state.
func (b *Batch) putState(f effect.Effect, o State) (whole bool) {
	f.ExpireAt = o.Head().ExpireAt
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

func (b *Batch) putMember(f effect.Effect, member []byte, score float64) {
	f.Kind, f.Field, f.Score = effect.Add, member, score
	b.Put(f)
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

// small reports whether a sorted set is cheaper to copy than to clone: after a clone, changes of
// the set copy what they change.
func small(set *zset.Set) bool {
	if set.Len() > SmallCount {
		return false
	}
	size := 0
	for member := range set.Ascend(0, set.Len()) {
		if size += len(member); size > SmallBytes {
			return false
		}
	}
	return true
}

// Large is a collection as it was at the time of the snapshot. It needs no lock: its content is not
// shared, or does not change.
type Large struct {
	of       effect.Effect // each effect is a copy of this one
	expireAt int64

	set  *zset.Set // a clone
	rank int       // of the next member

	pairs  []pair  // the next fields
	frozen *frozen // the walk that returns more fields
}

// newLargeHash preserves a hash as it is: a copy of up to SmallHash pairs, or a walk through the
// table.
func newLargeHash(of effect.Effect, expireAt int64, h *Fields) *Large {
	l := &Large{of: of, expireAt: expireAt, pairs: slices.Clone(h.few)}
	if h.Many != nil {
		l.frozen = h.Many.freeze()
	}
	return l
}

// Part adds the next elements, and the deadline after the last, as one group, and reports whether
// there are more.
func (l *Large) Part(b *Batch) (more bool) {
	if l.set != nil {
		more = l.members(b)
	} else {
		more = l.fields(b)
	}
	if !more {
		b.putExpire(l.of, l.expireAt)
	}
	b.End()
	return more
}

func (l *Large) members(b *Batch) (more bool) {
	for member, score := range l.set.Ascend(l.rank, l.set.Len()) {
		if b.Full() {
			return true
		}
		b.putMember(l.of, member, score)
		l.rank++
	}
	return false
}

func (l *Large) fields(b *Batch) (more bool) {
	for ; !b.Full(); l.pairs = l.pairs[1:] {
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

// Close ends the walk through a hash.
func (l *Large) Close() {
	if l.frozen != nil {
		l.frozen.close()
	}
}
