package engine

import (
	"bytes"
	"sort"
)

// Refund gives n hits back, from 1 on, and returns how many: no more than were used. The deadline stays as it is, but a limiter of which
// nothing is used afterwards is no key. Of a missing key nothing was used.
//
// From a sliding window the newest hits go; with an id (not nil), those that were recorded under it, the one with the first name last: as long
// as any is left, a call that is repeated under that id is known. A token bucket gets tokens back, at most those that were missing when it was last
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

// refundNamed finds the hits of a call by their names, and by their score, which is that of the first: a name may have been written by hand.
// The others stand behind the first; some may have been given back as the newest, so their numbers need not be in a row.
func (tx *Tx) refundNamed(k Key, o *zsetObject, n int64, id []byte) (refunded int64) {
	first := appendHitName(nil, id, 1)
	rank, at, ok := o.set.Rank(first)
	if !ok {
		return 0
	}
	prefix := append(bytes.Clone(id), ':')
	from, to := rank+1, o.set.FirstAfter(at)
	find := func(name []byte) int {
		return from + sort.Search(to-from, func(i int) bool {
			member, _ := o.set.At(from + i)
			return bytes.Compare(member, name) >= 0
		})
	}
	lo, hi := find(append(bytes.Clone(prefix), '0')), find(append(bytes.Clone(prefix), '9'+1))
	for i := hi - 1; i >= lo && refunded < n; i-- {
		if member, _ := o.set.At(i); areDigits(member[len(prefix):]) {
			tx.apply(o, &Effect{Kind: EffectRemove, Key: k, Field: bytes.Clone(member)})
			refunded++
		}
	}
	if refunded < n {
		tx.apply(o, &Effect{Kind: EffectRemove, Key: k, Field: first})
		refunded++
	}
	return refunded
}

func (tx *Tx) refundTokens(k Key, o *tokenObject, n int64) int64 {
	state, refunded := o.tokens().Refund(n)
	if state.Missing == 0 {
		tx.delete(k, o)
	} else {
		tx.putTokens(k, o, state, o.expireAt)
	}
	return refunded
}

// refundCount gives nothing back in the millisecond in which the window is over and the key still there, as keys are at their deadline.
func (tx *Tx) refundCount(k Key, o *fixedObject, n int64) int64 {
	if o.expireAt == tx.now {
		return 0
	}
	state, refunded := o.count().Refund(n)
	if state.Used == 0 {
		tx.delete(k, o)
	} else {
		tx.putCount(k, o, state, o.expireAt)
	}
	return refunded
}
