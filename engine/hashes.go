package engine

import (
	"rlserver/engine/effect"
	"rlserver/engine/object"
)

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
