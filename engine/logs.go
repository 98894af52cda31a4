package engine

import (
	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/zset"
)

// openFor returns the object under the key of an effect that is replayed, unpacked if the effect
// needs that. packs: the effect adds a hit, as snapshots before format version 9 have them, to a
// log that may be a record before and after, so that applyHits is to apply it.
func (e *Engine) openFor(o object.Object, f *effect.Effect) (opened object.Object, packs bool) {
	switch f.Kind {
	case effect.Add:
		if _, isRecord := o.(*object.Log); (o == nil || isRecord) && zset.IsHit(f.Field, f.Score) {
			return o, true
		}
	case effect.Remove, effect.RemoveSpan, effect.Call, effect.Uncall,
		effect.Reserve, effect.Forget, effect.Terms, effect.Ban:
	default:
		return o, false
	}
	return e.unpacked(f.DB, f.Key, o), false
}

// applyHits trims a log and records hits in it, or one that is named.
func (e *Engine) applyHits(o object.Object, f *effect.Effect) object.Object {
	sh := e.shardOf(f.Key)
	l, isRecord := o.(*object.Log)
	if !isRecord || f.Kind != effect.AddHits || f.Lo > 0 || !l.Append(f.Hits.At, f.Hits.Seq, uint64(f.Hits.N)) {
		o = sh.changeLog(o, f)
	}
	if f.Kind == effect.AddHits {
		sh.seq.Use(f.Hits.At, f.Hits.Seq+uint64(f.Hits.N))
		sh.setDeadline(f.DB, f.Key.Hash, o, f.ExpireAt)
	}
	return o
}

func (sh *shard) changeLog(o object.Object, f *effect.Effect) object.Object {
	z, large := o.(*object.ZSet)
	set, before := (*zset.Set)(nil), int64(0)
	switch o := o.(type) {
	case nil:
		set = sh.few.Load(&sh.e.hasher, &zset.Packed{Data: sh.fewText[:0]})
	case *object.Log:
		set = o.Load(&sh.e.hasher, &sh.few)
	default:
		set, before = &z.Set, z.Weight()
	}
	if f.Lo > 0 {
		set.RemoveSpan(0, f.Lo)
	}
	f.Record(set)
	if large {
		sh.grow(f.DB, z.Weight()-before)
	}
	return sh.store(o, f, set)
}

// applyCall trims a log and records hits of a call with an id in it.
func (e *Engine) applyCall(o object.Object, f *effect.Effect) object.Object {
	sh := e.shardOf(f.Key)
	if o == nil {
		o = sh.insert(f.DB, f.Key.Hash, e.newZSet(f.Key.Name))
	}
	z := o.(*object.ZSet)
	before := z.Weight()
	z.Set.RemoveSpan(0, f.Lo)
	z.Set.AddCall(f.Hits.At, f.Field, f.Hits.Seq, uint64(f.Hits.N))
	sh.grow(f.DB, z.Weight()-before)
	sh.setDeadline(f.DB, f.Key.Hash, z, f.ExpireAt)
	return z
}

// store stores a log that has changed: few hits as a record. o is the object so far.
func (sh *shard) store(o object.Object, f *effect.Effect, set *zset.Set) object.Object {
	var p zset.Packed
	few := set.Packed(&p)
	l, isRecord := o.(*object.Log)
	if isRecord && few && l.Suits(&p) {
		l.Put(&p)
		return l
	}
	room, fits := 0, false
	if few {
		room, fits = object.RoomFor(&p, len(f.Key.Name))
	}
	z, large := o.(*object.ZSet)
	switch {
	case large && (!fits || z.Ext != nil || len(p.Data) > object.MaxRecord/4): // it may grow again
		return o
	case !fits:
		z := object.NewZSet(&sh.e.hasher, f.Key.Name)
		if z.Set = *set.Clone(); o == nil {
			return sh.insert(f.DB, f.Key.Hash, z)
		}
		return sh.replace(f.DB, f.Key.Hash, o, z)
	case o == nil:
		l = sh.create(f.DB, f.Key, object.FormLog, room).(*object.Log)
	default:
		l = sh.dbs[f.DB].keys.Repack(sh.e.place(f.Key.Hash), o, room)
		sh.inherit(f.DB, l, o)
	}
	l.Put(&p)
	return l
}

// replace puts a sorted set in the place of another form of it.
func (sh *shard) replace(db int, hash uint64, o object.Object, z *object.ZSet) *object.ZSet {
	sh.inherit(db, z, o)
	sh.dbs[db].keys.Replace(sh.e.place(hash), o, z)
	return z
}

// inherit has an object take the place of another one.
func (sh *shard) inherit(db int, o, from object.Object) {
	o.SetDeadline(from.Deadline())
	o.Touch(from.Accessed())
	o.SetPressure(from.Pressure())
	sh.grow(db, object.Weigh(o)-object.Weigh(from))
}

// unpacked returns an object for reading and changing members: instead of a log that is a record, a
// sorted set that has taken its place.
func (e *Engine) unpacked(db int, k Key, o object.Object) object.Object {
	if l, ok := o.(*object.Log); ok {
		return e.shardOf(k).replace(db, k.Hash, l, l.Unpacked(&e.hasher))
	}
	return o
}
