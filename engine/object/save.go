package object

import (
	"slices"

	"rlserver/engine/effect"
	"rlserver/zset"
)

// What a Step does under a lock ends with these, or a little later: buckets of a dict are taken
// whole.
const (
	StepKeys  = 64
	StepBytes = 64 << 10
)

// EffectWeight is what an effect counts beside its text.
const EffectWeight = 64

// Batch is objects as effects, a group for each. Those that are too large wait to be saved in
// parts.
type Batch struct {
	Effects []effect.Effect
	Ends    []int  // of the groups, in effects
	Text    []byte // what would change in the keyspace is copied here
	Weight  int
	Large   []*Large
}

// Full reports whether the batch is as large as one step may make it.
func (b *Batch) Full() bool { return b.Weight >= StepBytes }

// Add takes an object in, under the lock of its shard.
func (b *Batch) Add(db int, o Object) {
	// a name is never written over, nor is a field or its value
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

// valueOf is a string's value: a copy if it is short, otherwise itself, and the string's next
// change has to copy it if need be.
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

// Put adds an effect to the group that End ends.
func (b *Batch) Put(f effect.Effect) {
	b.Effects = append(b.Effects, f)
	b.Weight += EffectWeight + len(f.Key.Name) + len(f.Field) + len(f.Value)
}

// End makes a group of the effects since the last one.
func (b *Batch) End() { b.Ends = append(b.Ends, len(b.Effects)) }

// Visit visits the groups.
func (b *Batch) Visit(visit func([]effect.Effect)) {
	start := 0
	for _, end := range b.Ends {
		if start < end {
			visit(b.Effects[start:end])
		}
		start = end
	}
}

// Reset empties the batch, but for its room.
func (b *Batch) Reset() {
	clear(b.Effects)
	clear(b.Large)
	*b = Batch{Effects: b.Effects[:0], Ends: b.Ends[:0], Text: b.Text[:0], Large: b.Large[:0]}
}

// small reports whether a sorted set is cheaper to copy than to clone: its owner pays for a clone
// with its next changes.
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

// Large is a collection as it was at the snapshot's moment. No lock guards it: what it holds is
// nobody else's, or does not change.
type Large struct {
	of       effect.Effect // each effect begins as this one
	expireAt int64

	set  *zset.Set // a clone
	rank int       // of the next member

	pairs  []pair  // the next fields
	frozen *frozen // where more of them are
}

// newLargeHash keeps a hash as it is: the pairs, of a few hundred at most, or a walk through the
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

// Close ends the walk through a hash, which changes wait for no longer.
func (l *Large) Close() {
	if l.frozen != nil {
		l.frozen.close()
	}
}
