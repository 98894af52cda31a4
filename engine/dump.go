package engine

import (
	"rlserver/engine/effect"
	"rlserver/engine/eviction"
	"rlserver/engine/object"
	"rlserver/engine/table"
)

// Content returns the value of a key; ok is false for a missing key.
func (tx *Tx) Content(k Key) (c object.Content, ok bool) {
	o := tx.lookup(k)
	if o == nil {
		return c, false
	}
	o.Content(&c)
	return c, true
}

// Restore stores a value, which is Valid, under a key and replaces the old value. If the new one
// has already expired, the key is deleted.
func (tx *Tx) Restore(k Key, r *object.Restored) error {
	if !tx.e.RoomFor(r.Weight) {
		return ErrOutOfMemory
	}
	tx.Delete(k)
	if r.ExpireAt != 0 && r.ExpireAt <= tx.now {
		return nil
	}
	o := tx.restore(k, r)
	for f := range r.Extension(k) {
		o = tx.apply(o, &f)
	}
	if r.ExpireAt != 0 && o.Deadline() != r.ExpireAt {
		tx.apply(o, &effect.Effect{Kind: effect.Expire, Key: k, ExpireAt: r.ExpireAt})
	}
	switch counts := tx.e.memory.frequency.Load(); {
	case counts && r.Uses >= 0:
		o.Touch(eviction.MinuteOf(tx.now)<<8 | uint32(r.Uses))
	case !counts && r.Idle >= 0:
		o.Touch(uint32(tx.now/1000 - min(r.Idle, eviction.ClockMask)))
	}
	return nil
}

func (tx *Tx) restore(k Key, r *object.Restored) (o object.Object) {
	if r.Type == object.TypeString {
		return tx.apply(nil, &effect.Effect{Kind: effect.String, Key: k, Value: r.Text, ExpireAt: r.ExpireAt})
	}
	f := effect.Effect{Key: k, ExpireAt: r.ExpireAt}
	if _, limiter := object.PutNumbers(&f, r.Type, r.Numbers); limiter {
		return tx.apply(nil, &f)
	}
	if r.Type == object.TypeHash {
		tx.HSet(k, r.Elements)
		return tx.find(tx.db, k)
	}
	if len(r.Elements) > 0 {
		return tx.Insert(k, r.Type, 0, r.Elements...)
	}
	for _, m := range r.Members {
		o = tx.apply(o, &effect.Effect{Kind: effect.Add, Key: k, Field: m.Member, Score: kept(m.Score)})
	}
	return o
}

// DigestAll returns the digest of all databases. It is for a call on the whole keyspace.
func (tx *Tx) DigestAll() (all object.Digest) {
	for db := range tx.e.databases {
		begun := false
		for _, sh := range tx.locked {
			keys := sh.dbs[db].keys
			if keys == nil {
				continue
			}
			for o := range keys.All() {
				if o.Expired(tx.now) {
					continue
				}
				if !begun {
					all.MixNumber(db)
					begun = true
				}
				all.Key(o)
			}
		}
	}
	return all
}

// Digest returns the digest of a key's value, without its name; all zeros for a missing key.
func (tx *Tx) Digest(k Key) (d object.Digest) {
	if o := tx.peek(k); o != nil {
		d.Object(o)
	}
	return d
}

// Reload rebuilds all keys from the effects that a snapshot would write, as loading it would, and
// returns how many there are. State that is in no effect is lost. Expired keys stay until they are
// deleted. It is for a call on the whole keyspace that is not writing: nothing changes, so the
// journal gets nothing.
func (tx *Tx) Reload() (keys int) {
	for _, sh := range tx.locked {
		for db := range sh.dbs {
			old := sh.dbs[db].keys
			if old == nil {
				continue
			}
			sh.flush(db)
			keys += old.Len()
			tx.e.reload(db, old)
		}
	}
	return keys
}

func (e *Engine) reload(db int, old *table.Table) {
	object.Save(db, old.All(), func(effects []effect.Effect) {
		for i := range effects {
			f := &effects[i]
			f.Key = e.Key(f.Key.Name)
			if err := e.replay(f); err != nil {
				panic(err) // it would not load
			}
		}
	})
}
