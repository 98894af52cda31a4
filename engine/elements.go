package engine

import (
	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/internal/list"
)

// List returns the list that a key holds.
func (tx *Tx) List(k Key) (list.View, error) {
	o, err := as[*object.List](tx.lookup(k))
	return o.View(), err
}

// Members returns the set that a key holds.
func (tx *Tx) Members(k Key) (object.SetView, error) {
	o, err := as[*object.Set](tx.lookup(k))
	return o.View(), err
}

// Hash returns the hash that a key holds.
func (tx *Tx) Hash(k Key) (object.HashView, error) {
	_, h, err := tx.hash(k)
	return h, err
}

// hash is Hash for callers that apply effects to the object.
func (tx *Tx) hash(k Key) (object.Object, object.HashView, error) {
	o := tx.lookup(k)
	h, err := as[*object.Hash](o)
	return o, h.View(), err
}

// HSet sets fields, given as alternating fields and values, and returns how many fields are new. A
// missing key is an empty hash.
func (tx *Tx) HSet(k Key, pairs [][]byte) (added int, err error) {
	o, h, err := tx.hash(k)
	if err != nil {
		return 0, err
	}
	for ; len(pairs) > 1; pairs = pairs[2:] {
		old, exists := h.Get(pairs[0])
		if exists && old == string(pairs[1]) {
			tx.Rewrote(k, effect.HashSet)
			continue
		}
		if !exists {
			added++
		}
		o = tx.apply(o, &effect.Effect{Kind: effect.HashSet, Key: k, Field: pairs[0], Value: pairs[1]})
		h = object.HashIn(o)
	}
	return added, nil
}

// HDel removes fields and returns how many of them existed. A hash without fields is deleted.
func (tx *Tx) HDel(k Key, fields [][]byte) (removed int, err error) {
	if _, err = tx.Hash(k); err != nil {
		return 0, err
	}
	return tx.removeEach(k, effect.HashDelete, fields), nil
}

// insertStep is how many bytes of elements one effect of Insert has, about.
const insertStep = 64 << 10

// Insert inserts elements in the list, from rank at on, or in the set that a key holds or, if it is
// missing, gets.
func (tx *Tx) Insert(k Key, t object.Type, at int, elements ...[]byte) (o object.Object) {
	o = tx.find(tx.db, k)
	f := effect.Effect{Kind: effect.Insert, Key: k, Field: object.BytesOf(string(t)), Lo: at, Hi: at}
	f.Value = tx.packed[:0]
	for i, e := range elements {
		f.Value = effect.AppendElement(f.Value, e)
		if f.Hi++; len(f.Value) >= insertStep || i == len(elements)-1 {
			o = tx.apply(o, &f)
			if f.Value = f.Value[:0]; t.Ranked() {
				f.Lo = f.Hi
			} else {
				f.Hi = f.Lo
			}
		}
	}
	if tx.packed = f.Value; cap(tx.packed) > keptEffects {
		tx.packed = nil
	}
	return o
}

// RemoveSpan removes the elements of a list or sorted set from rank lo up to but not including hi.
// One without elements is deleted.
func (tx *Tx) RemoveSpan(k Key, lo, hi int) {
	if lo < hi {
		tx.apply(tx.find(tx.db, k), &effect.Effect{Kind: effect.RemoveSpan, Key: k, Lo: lo, Hi: hi})
	}
}

// SRem removes members of a set, and returns how many existed. A set without members is deleted.
func (tx *Tx) SRem(k Key, members ...[]byte) (removed int) {
	return tx.removeEach(k, effect.Remove, members)
}

// removeEach removes elements of a collection by an effect for each, and returns how many existed.
func (tx *Tx) removeEach(k Key, kind effect.Kind, elements [][]byte) (removed int) {
	o := tx.find(tx.db, k)
	for _, e := range elements {
		if object.Has(o, e) {
			o = tx.apply(o, &effect.Effect{Kind: kind, Key: k, Field: e})
			removed++
		}
	}
	return removed
}
