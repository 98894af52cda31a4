package engine

import "bytes"

// Refund gives n hits back, from 1 on, and returns how many: no more than were used. The deadline stays as it is, but a limiter of which
// nothing is used afterwards is no key. Of a missing key nothing was used.
//
// From a sliding window the newest hits go; with an id (not nil), those that were recorded under it, the last name first: as long as any
// is left, a call that is repeated under that id is known. A token bucket gets tokens back, at most those that were missing when it was last
// taken from. A fixed window forgets hits of the current window. The latter two know no ids: ErrNoIDs.
func (tx *Tx) Refund(k Key, n int64, id []byte) (int64, error) {
	o := tx.lookup(k)
	switch o := o.(type) {
	case nil:
		return 0, nil
	case *zsetObject:
		if id != nil {
			return tx.refundNamed(k, o, n, id), nil
		}
		return tx.refundNewest(k, o, n), nil
	case *tokenObject:
		if id != nil {
			return 0, ErrNoIDs
		}
		return tx.refundTokens(k, o, n), nil
	case *fixedObject:
		if id != nil {
			return 0, ErrNoIDs
		}
		return tx.refundCount(k, o, n), nil
	}
	return 0, ErrWrongType
}

func (tx *Tx) refundNewest(k Key, o *zsetObject, n int64) int64 {
	size := o.set.Len()
	n = min(n, int64(size))
	tx.apply(o, &Effect{Kind: EffectRemoveSpan, Key: k, Lo: size - int(n), Hi: size})
	return n
}

// refundNamed finds the hits of a call by their names, and by their score: a name in between may have been taken by another call.
func (tx *Tx) refundNamed(k Key, o *zsetObject, n int64, id []byte) (refunded int64) {
	at, ok := o.set.Score(id)
	if !ok {
		return 0
	}
	name, names := bytes.Clone(id), int64(0)
	for taken := true; taken; {
		names++
		name = appendHitName(name[:0], id, names+1)
		_, taken = o.set.Score(name)
	}
	for ; names > 0 && refunded < n; names-- {
		name = appendHitName(name[:0], id, names)
		if score, _ := o.set.Score(name); score == at {
			tx.apply(o, &Effect{Kind: EffectRemove, Key: k, Field: bytes.Clone(name)})
			refunded++
		}
	}
	return refunded
}

func (tx *Tx) refundTokens(k Key, o *tokenObject, n int64) int64 {
	state, refunded := o.tokens().Refund(n)
	if state.Missing == 0 {
		tx.delete(k, o)
	} else {
		tx.apply(o, &Effect{Kind: EffectTokens, Key: k, Tokens: state, ExpireAt: o.expireAt})
	}
	return refunded
}

// refundCount gives nothing back in the millisecond in which the window is over and the key still there, as keys are at their deadline.
func (tx *Tx) refundCount(k Key, o *fixedObject, n int64) int64 {
	if o.expireAt == tx.now {
		return 0
	}
	state, refunded := o.count.Refund(n)
	if state.Used == 0 {
		tx.delete(k, o)
	} else {
		tx.apply(o, &Effect{Kind: EffectCount, Key: k, Count: state, ExpireAt: o.expireAt})
	}
	return refunded
}
