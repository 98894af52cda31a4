package engine

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unsafe"

	"rlserver/bitmap"
	"rlserver/zset"
)

// Apply makes the changes of a call that happened elsewhere or earlier, at now (Unix ms): it is how
// a log is replayed. All of them happen at once, in the eyes of others: it takes the locks that
// they need, as few as that is. Their keys are hashed anew; only the names count. The error is of
// an effect that cannot have happened to this state, or to any: those before it have been applied.
// To delete a missing key is no error.
func (e *Engine) Apply(now int64, effects []Effect) error {
	tx := Tx{e: e}
	tx.lockFor(now, effects)
	defer tx.unlock()
	e.naming.Lock()
	defer e.naming.Unlock()
	for i := range effects {
		f := effects[i]
		f.Key, f.To = e.Key(f.Key.Name), e.Key(f.To.Name)
		if !e.has(f.DB) || !e.has(f.ToDB) {
			return fmt.Errorf(
				"effect of kind %d on %.64q is about databases %d and %d of %d",
				f.Kind,
				f.Key.Name,
				f.DB,
				f.ToDB,
				e.databases,
			)
		}
		var o object
		if f.Kind.changesKey() {
			o = e.shardOf(f.Key).find(f.DB, f.Key)
		}
		if o == nil && f.Kind == EffectDelete {
			// its time had come when the snapshot was taken that this state is from, and it was
			// deleted later
			continue
		}
		if f.Kind == EffectZSet {
			var err error
			if f.set, err = zset.Unpack(&e.hasher, f.Value); err != nil {
				return fmt.Errorf("effect %s on %.64q: %w", f.Kind, f.Key.Name, err)
			}
		}
		if f.Kind == EffectPolicy {
			if _, err := f.policy(); err != nil {
				return fmt.Errorf("effect %s on %.64q: %w", f.Kind, f.Key.Name, err)
			}
		} else if !f.fits(o) {
			return fmt.Errorf("effect %s on %.64q does not fit what the key holds, %s", f.Kind, f.Key.Name, typeOf(o))
		}
		e.apply(o, &f)
	}
	return nil
}

func (e *Engine) has(db int) bool { return 0 <= db && db < e.databases }

func typeOf(o object) Type {
	if o == nil {
		return TypeNone
	}
	return o.kind()
}

// lockFor locks what effects change.
func (tx *Tx) lockFor(now int64, effects []Effect) {
	if len(effects) > len(tx.e.shards) { // they are bound to need nearly all
		tx.BeginAll(now, 0, false)
		return
	}
	var few [4]Key
	keys := few[:0]
	for i := range effects {
		f := &effects[i]
		if !f.Kind.changesKey() {
			tx.BeginAll(now, 0, false)
			return
		}
		keys = append(keys, tx.e.Key(f.Key.Name))
		if f.Kind.hasTo() {
			keys = append(keys, tx.e.Key(f.To.Name))
		}
	}
	tx.Begin(now, 0, keys, false)
}

// fits reports whether the effect can have happened to an object, nil for a missing key.
func (f *Effect) fits(o object) bool {
	switch f.Kind {
	case EffectZSet:
		return f.set.Len() > 0
	case EffectString, EffectFlush, EffectSwap, EffectPolicyDelete:
		return true
	case EffectDelete, EffectExpire, EffectRename, EffectCopy, EffectMove:
		return o != nil
	case EffectSplice:
		return missingOr[*stringObject](o) && f.Lo >= 0 && f.Lo <= MaxString+bitmap.MaxField-len(f.Value)
	case EffectHashSet:
		return missingOr[*hashObject](o)
	case EffectHashDelete:
		return is[*hashObject](o)
	case EffectAdd:
		return missingOr[*zsetObject](o) && !math.IsNaN(f.Score)
	case EffectRemove:
		return is[*zsetObject](o)
	case EffectRemoveSpan:
		return is[*zsetObject](o) && 0 <= f.Lo && f.Lo < f.Hi && f.Hi <= o.(*zsetObject).set.Len()
	case EffectHits:
		z, _ := o.(*zsetObject)
		return missingOr[*zsetObject](o) && f.Lo >= 0 && (f.Lo == 0 || z != nil && f.Lo <= z.set.Len()) &&
			0 < f.Hits.N &&
			f.Hits.N <= MaxHits
	}
	fits, _ := f.fitsState(o)
	return fits
}

func is[T object](o object) bool {
	_, ok := o.(T)
	return ok
}

func missingOr[T object](o object) bool { return o == nil || is[T](o) }

// apply is the one function that changes state: live calls and replay all come through it.
// o is what is under f.Key, nil for nothing; what is there afterwards is returned.
// An effect that does not fit the state panics; Apply has looked before.
func (e *Engine) apply(o object, f *Effect) object {
	if e.snapshot != nil {
		e.snapshot.before(o, f)
	}
	switch f.Kind {
	case EffectDelete:
		return e.drop(o, f)
	case EffectExpire:
		e.shardOf(f.Key).setDeadline(f.DB, f.Key.hash, o, f.ExpireAt)
		return o
	case EffectString:
		return e.applyString(o, f)
	case EffectSplice:
		return e.applySplice(o, f)
	case EffectHashSet:
		h := holding(e, o, f, e.newHash)
		weight := h.weight()
		h.fields.set(f.Field, f.Value)
		e.grown(f, h.weight()-weight)
		return h
	case EffectHashDelete:
		h := o.(*hashObject)
		weight := h.weight()
		h.fields.remove(f.Field)
		e.grown(f, h.weight()-weight)
		return e.keepUnlessEmpty(h, h.fields.len(), f)
	case EffectAdd:
		z := holding(e, o, f, e.newZSet)
		weight := z.weight()
		z.set.Add(f.Field, f.Score)
		e.grown(f, z.weight()-weight)
		return z
	case EffectRemove:
		z := o.(*zsetObject)
		weight := z.weight()
		z.set.Remove(f.Field)
		e.grown(f, z.weight()-weight)
		return e.keepUnlessEmpty(z, z.set.Len(), f)
	case EffectRemoveSpan:
		z := o.(*zsetObject)
		weight := z.weight()
		z.set.RemoveSpan(f.Lo, f.Hi)
		e.grown(f, z.weight()-weight)
		return e.keepUnlessEmpty(z, z.set.Len(), f)
	case EffectZSet:
		return e.applyZSet(o, f)
	case EffectHits:
		return e.applyHits(o, f)
	case EffectRename:
		return e.applyRename(o, f)
	case EffectCopy:
		e.shardOf(f.To).continues(e.shardOf(f.Key))
		e.put(f.ToDB, f.To, o.clone(string(f.To.Name)))
		return o
	case EffectMove:
		e.drop(o, f)
		e.put(f.ToDB, f.Key, o)
		return nil
	case EffectFlush:
		for i := range e.shards {
			e.shards[i].flush(f.DB)
		}
	case EffectSwap:
		for i := range e.shards {
			dbs := e.shards[i].dbs
			dbs[f.DB], dbs[f.ToDB] = dbs[f.ToDB], dbs[f.DB]
			e.shards[i].counts.changed = manyDatabases
		}
	case EffectPolicy:
		e.applyPolicy(f)
	case EffectPolicyDelete:
		e.applyPolicyDelete(f)
	default:
		after, ok := e.applyState(o, f)
		if !ok {
			panic(fmt.Sprintf("engine: effect of unknown kind %d", f.Kind))
		}
		return after
	}
	return nil
}

// holding gives the object of the wanted type under the effect's key, a new one if there is none.
func holding[T object](e *Engine, o object, f *Effect, create func(name []byte) T) T {
	if o != nil {
		return o.(T)
	}
	t := create(f.Key.Name)
	e.shardOf(f.Key).insert(f.DB, f.Key.hash, t)
	return t
}

func (e *Engine) newHash(name []byte) *hashObject {
	o, text := withName[hashObject](name)
	o.name, o.fields = text, newHash(&e.hasher)
	return o
}

func (e *Engine) newZSet(name []byte) *zsetObject {
	o, text := withName[zsetObject](name)
	o.name, o.set = text, *zset.New(&e.hasher)
	return o
}

func newString(name []byte) *stringObject {
	o, text := withName[stringObject](name)
	o.name = text
	return o
}

// withName allocates an object together with the text of its name, if that is as short as names
// are: one allocation, and no further memory to be fetched to see that a key is the one that was
// asked for. A token bucket with a name of 16 bytes fills one cache line.
func withName[T any](name []byte) (o *T, text string) {
	switch {
	case len(name) <= 16:
		both := new(struct {
			text   [16]byte
			object T
		})
		return &both.object, unsafe.String(&both.text[0], copy(both.text[:], name))
	case len(name) <= 32:
		both := new(struct {
			text   [32]byte
			object T
		})
		return &both.object, unsafe.String(&both.text[0], copy(both.text[:], name))
	}
	return new(T), string(name)
}

// drop removes what is under the effect's key.
func (e *Engine) drop(o object, f *Effect) object {
	e.shardOf(f.Key).remove(f.DB, f.Key.hash, o)
	return nil
}

// keepUnlessEmpty drops a collection that lost its last element: an empty one is no key.
func (e *Engine) keepUnlessEmpty(o object, size int, f *Effect) object {
	if size == 0 {
		return e.drop(o, f)
	}
	return o
}

// put stores an object under a key, in place of what was there.
func (e *Engine) put(db int, k Key, o object) {
	sh := e.shardOf(k)
	if old := sh.find(db, k); old != nil {
		sh.remove(db, k.hash, old)
	}
	sh.insert(db, k.hash, o)
}

func (e *Engine) applyString(o object, f *Effect) object {
	s, ok := o.(*stringObject)
	if !ok {
		if o != nil {
			e.drop(o, f)
		}
		s = holding(e, nil, f, newString)
	}
	weight := s.weight()
	// the old one is not written over: a caller may still hold it
	s.value, s.shared = bytes.Clone(f.Value), false
	e.grown(f, s.weight()-weight)
	if s.expireAt != f.ExpireAt {
		e.shardOf(f.Key).setDeadline(f.DB, f.Key.hash, s, f.ExpireAt)
	}
	return s
}

func (e *Engine) applySplice(o object, f *Effect) object {
	s := holding(e, o, f, newString)
	weight := s.weight()
	if s.shared && f.Lo < len(s.value) {
		s.value, s.shared = bytes.Clone(s.value), false
	}
	if end := f.Lo + len(f.Value); end > len(s.value) {
		s.value = append(s.value, make([]byte, end-len(s.value))...)
	}
	copy(s.value[f.Lo:], f.Value)
	e.grown(f, s.weight()-weight)
	return s
}

func (e *Engine) applyRename(o object, f *Effect) object {
	e.drop(o, f)
	o.head().name = string(f.To.Name)
	e.shardOf(f.To).continues(e.shardOf(f.Key))
	e.put(f.DB, f.To, o)
	return nil
}

func (e *Engine) applyZSet(o object, f *Effect) object {
	if o != nil {
		e.drop(o, f)
	}
	z := e.newZSet(f.Key.Name)
	z.set = *f.set
	e.shardOf(f.Key).insert(f.DB, f.Key.hash, z)
	return z
}

// applyHits trims a log and records hits in it. The members are written into a buffer on the stack:
// the set copies them.
func (e *Engine) applyHits(o object, f *Effect) object {
	z := holding(e, o, f, e.newZSet)
	weight := z.weight()
	if f.Lo > 0 {
		z.set.RemoveSpan(0, f.Lo)
	}
	f.Hits.record(&z.set)
	e.grown(f, z.weight()-weight)
	sh := e.shardOf(f.Key)
	sh.seq.gave(f.Hits.At, f.Hits.Seq+uint64(f.Hits.N))
	sh.setDeadline(f.DB, f.Key.hash, z, f.ExpireAt)
	return z
}

// manyHits is from how many hits on they are packed.
const manyHits = 1024

// record adds the hits to a log.
func (h Hits) record(log *zset.Set) {
	if h.N >= manyHits && h.pack(log) {
		return
	}
	var buf [40]byte
	for i := range uint64(h.N) {
		log.Add(h.member(buf[:0], i), float64(h.At))
	}
}

// pack adds the hits to a log that ends before them, and reports whether it does.
func (h Hits) pack(log *zset.Set) bool {
	return log.Extend(float64(h.At), func(yield func([]byte) bool) {
		var buf [40]byte
		inByteOrder(h.Seq, h.Seq+uint64(h.N), func(seq uint64) bool { return yield(h.member(buf[:0], seq-h.Seq)) })
	})
}

// inByteOrder visits the numbers from lo up to but not hi in the order of what they read as text,
// until visit returns false.
func inByteOrder(lo, hi uint64, visit func(uint64) bool) {
	if lo == 0 && !visit(0) {
		return
	}
	for digit := uint64(1); digit <= 9; digit++ {
		if !visitPrefix(digit, lo, hi, visit) {
			return
		}
	}
}

// visitPrefix visits those of the numbers that begin with the digits of one.
func visitPrefix(prefix, lo, hi uint64, visit func(uint64) bool) bool {
	if prefix >= hi {
		return true
	}
	// of those that begin with it and are below hi, by the number of their digits
	least, most := prefix, prefix
	for most < lo && least <= (hi-1)/10 {
		least, most = least*10, most*10+9
	}
	if most < lo {
		return true
	}
	if prefix >= lo && !visit(prefix) {
		return false
	}
	if prefix > (hi-1)/10 {
		return true
	}
	for digit := range uint64(10) {
		if !visitPrefix(prefix*10+digit, lo, hi, visit) {
			return false
		}
	}
	return true
}

// member appends the name of the i-th hit.
func (h Hits) member(dst []byte, i uint64) []byte {
	dst = strconv.AppendInt(dst, h.At, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, h.Seq+i, 10)
}

// bytesOf looks at a string's bytes, which must not be written to.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
