package engine

import (
	"fmt"
	"slices"

	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/engine/policy"
	"rlserver/zset"
)

// Apply applies the effects of a call that happened elsewhere or earlier, or of several, in order,
// at now (Unix ms). Other calls see all of them or none: it locks only the shards that they need.
// It sets the hashes of the keys. The error is about the first effect that does not fit the state:
// those before it have been applied. To delete a missing key fits.
func (e *Engine) Apply(now int64, effects []effect.Effect) error {
	_, err := e.ApplyAll(now, effects)
	return err
}

// ApplyAll is Apply, and returns the effect that does not fit.
func (e *Engine) ApplyAll(now int64, effects []effect.Effect) (misfit *effect.Effect, err error) {
	keys, list := make([]Key, 0, MaxPrefetched), make([]*effect.Effect, 0, MaxPrefetched)
	all := len(effects) > len(e.shards) // nearly all shards
	for i := range effects {
		f := &effects[i]
		f.Key, all = e.Key(f.Key.Name), all || !f.Kind.ChangesKey()
		if keys, list = append(keys, f.Key), append(list, f); f.Kind.HasTo() {
			f.To = e.Key(f.To.Name)
			keys = append(keys, f.To)
		}
	}
	tx := Tx{e: e}
	if all {
		tx.BeginAll(now, 0, false)
	} else {
		tx.Begin(now, 0, keys, false)
	}
	defer tx.unlock()
	e.naming.Lock()
	defer e.naming.Unlock()
	return tx.replay(list)
}

// ShardOf returns the index of a key's shard.
func (e *Engine) ShardOf(k Key) int { return e.shardIndex(k.Hash) }

// ApplyTo is ApplyAll for effects on hashed keys of one shard, of an engine that no call uses yet.
// It may run at the same time for others.
func (tx *Tx) ApplyTo(shard int, now int64, list []*effect.Effect) (misfit *effect.Effect, err error) {
	tx.locked = append(tx.locked, &tx.e.shards[shard])
	tx.begin(now, 0, false, true)
	defer tx.unlock()
	return tx.replay(list)
}

// replay applies effects whose keys are hashed, up to the first that does not fit.
func (tx *Tx) replay(list []*effect.Effect) (misfit *effect.Effect, err error) {
	keys := [MaxPrefetched]Key{}
	for group := range slices.Chunk(list, MaxPrefetched) {
		for i, f := range group {
			keys[i], tx.db = f.Key, max(0, min(f.DB, tx.e.databases-1)) // mostly that of all
		}
		tx.Prefetch(keys[:len(group)])
		for _, f := range group {
			if err := tx.e.replay(f); err != nil {
				return f, err
			}
		}
	}
	return nil, nil
}

// replay applies an effect whose keys are hashed, if it fits.
func (e *Engine) replay(f *effect.Effect) error {
	if !e.has(f.DB) || !e.has(f.ToDB) {
		return fmt.Errorf("effect of kind %d on %.64q is about databases %d and %d of %d",
			f.Kind, f.Key.Name, f.DB, f.ToDB, e.databases)
	}
	var o object.Object
	if f.Kind.ChangesKey() {
		o = e.shardOf(f.Key).find(f.DB, f.Key)
	}
	o, packs := e.openFor(o, f)
	if o == nil && f.Kind == effect.Delete {
		// it had expired when the snapshot was taken from which this state was loaded, and was
		// deleted later
		return nil
	}
	if f.Kind == effect.ZSet {
		var err error
		if f.Set, err = zset.Unpack(&e.hasher, f.Value); err != nil {
			return fmt.Errorf("effect %s on %.64q: %w", f.Kind, f.Key.Name, err)
		}
	}
	if f.Kind == effect.Policy {
		if _, err := policy.Parse(f.Key.Name, f.Value); err != nil {
			return fmt.Errorf("effect %s on %.64q: %w", f.Kind, f.Key.Name, err)
		}
	} else if !object.Fits(f, o) {
		return fmt.Errorf("effect %s on %.64q does not fit what the key holds, %s",
			f.Kind, f.Key.Name, object.TypeOf(o))
	}
	if packs {
		e.keepFor(f)
		e.applyHits(o, f)
		return nil
	}
	e.apply(o, f)
	return nil
}

func (e *Engine) has(db int) bool { return 0 <= db && db < e.databases }

// apply is the only function that changes state, for live calls and for replay. o is the object
// under f.Key, nil if it is missing; the object there afterwards is returned. It panics if the
// effect does not fit the state, which Apply checks first.
func (e *Engine) apply(o object.Object, f *effect.Effect) object.Object {
	if e.snapshot != nil {
		e.keepFor(f)
	}
	switch f.Kind {
	case effect.Delete:
		return e.drop(o, f)
	case effect.Expire:
		e.shardOf(f.Key).setDeadline(f.DB, f.Key.Hash, o, f.ExpireAt)
		return o
	case effect.String:
		return e.applyString(o, f)
	case effect.Splice:
		return e.applySplice(o, f)
	case effect.Remove, effect.RemoveSpan, effect.Uncall:
		e.shardOf(f.Key).seq.SkipUsed()
		return e.applyElements(o, f)
	case effect.HashSet, effect.HashDelete, effect.Add, effect.Insert:
		return e.applyElements(o, f)
	case effect.ZSet:
		return e.applyZSet(f)
	case effect.AddHits, effect.Runs:
		return e.applyHits(o, f)
	case effect.Call:
		return e.applyCall(o, f)
	case effect.Reserve, effect.Forget, effect.Terms, effect.Ban:
		return e.applyExtension(o, f)
	case effect.Rename:
		return e.applyRename(o, f)
	case effect.Copy:
		e.shardOf(f.To).seq.Continue(&e.shardOf(f.Key).seq)
		e.put(f.ToDB, f.To, o.Clone(string(f.To.Name)))
		return o
	case effect.Move:
		e.drop(o, f)
		e.put(f.ToDB, f.Key, o)
		return nil
	case effect.Flush:
		for i := range e.shards {
			e.shards[i].flush(f.DB)
		}
	case effect.Swap:
		for i := range e.shards {
			e.shards[i].seq.SkipUsed()
			dbs := e.shards[i].dbs
			dbs[f.DB], dbs[f.ToDB] = dbs[f.ToDB], dbs[f.DB]
			e.shards[i].counts.NoteAll()
		}
	case effect.Policy:
		e.applyPolicy(f)
	case effect.PolicyDelete:
		e.overrides.DeleteAll(e.policies.Get(f.Key.Name))
		e.policies.Delete(string(f.Key.Name)) // the lock naming is held
	case effect.Override, effect.OverrideDelete:
		e.applyOverride(f)
	case effect.Script, effect.ScriptDelete:
		e.Scripts.Apply(f)
	default:
		after, ok := e.applyState(o, f)
		if !ok {
			panic(fmt.Sprintf("engine: effect of unknown kind %d", f.Kind))
		}
		return after
	}
	return nil
}

// holding returns the object of the wanted type under the key of the effect, a new one if the key
// is missing.
func holding[T object.Object](e *Engine, o object.Object, f *effect.Effect, create func(name []byte) T) T {
	if o != nil {
		return o.(T)
	}
	t := create(f.Key.Name)
	e.shardOf(f.Key).insert(f.DB, f.Key.Hash, t)
	return t
}

func (e *Engine) newZSet(name []byte) *object.ZSet { return object.NewZSet(&e.hasher, name) }

// drop removes the object under the effect's key.
func (e *Engine) drop(o object.Object, f *effect.Effect) object.Object {
	e.shardOf(f.Key).remove(f.DB, f.Key.Hash, o)
	return nil
}

// applyElements changes the elements of a collection. One that has lost its last is dropped.
func (e *Engine) applyElements(o object.Object, f *effect.Effect) object.Object {
	if o == nil {
		o = object.Create(&e.hasher, f)
		e.shardOf(f.Key).insert(f.DB, f.Key.Hash, o)
	}
	weight := o.Weight()
	left := object.Change(o, f)
	e.grown(f, o.Weight()-weight)
	if left == 0 {
		return e.drop(o, f)
	}
	return o
}

// put stores an object under a key, and replaces the one there.
func (e *Engine) put(db int, k Key, o object.Object) {
	sh := e.shardOf(k)
	if old := sh.find(db, k); old != nil {
		sh.remove(db, k.Hash, old)
	}
	sh.insert(db, k.Hash, o)
}

func (e *Engine) applyString(o object.Object, f *effect.Effect) object.Object {
	s, ok := o.(*object.String)
	if !ok {
		if o != nil {
			e.drop(o, f)
		}
		s = holding(e, nil, f, object.NewString)
	}
	weight := s.Weight()
	s.Put(f.Value)
	e.grown(f, s.Weight()-weight)
	if s.ExpireAt != f.ExpireAt {
		e.shardOf(f.Key).setDeadline(f.DB, f.Key.Hash, s, f.ExpireAt)
	}
	return s
}

func (e *Engine) applySplice(o object.Object, f *effect.Effect) object.Object {
	s := holding(e, o, f, object.NewString)
	weight := s.Weight()
	s.Splice(f.Lo, f.Value)
	e.grown(f, s.Weight()-weight)
	return s
}

func (e *Engine) applyRename(o object.Object, f *effect.Effect) object.Object {
	e.drop(o, f)
	o = object.Rename(o, string(f.To.Name))
	e.shardOf(f.To).seq.Continue(&e.shardOf(f.Key).seq)
	e.put(f.DB, f.To, o)
	return nil
}

func (e *Engine) applyZSet(f *effect.Effect) object.Object {
	z := e.newZSet(f.Key.Name)
	z.Set = *f.Set
	e.put(f.DB, f.Key, z)
	return z
}
