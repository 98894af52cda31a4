package engine

import (
	"bytes"
	"sort"
)

// Refund gives n hits back, from 1 on, and returns how many: no more than were used. The deadline
// stays as it is, but a limiter of which nothing is used afterwards is no key. Of a missing key
// nothing was used.
//
// From a sliding window the newest hits go; with an id (not nil), those that were recorded under
// it, the one with the first name last: as long as any is left, a call that is repeated under that
// id is known. A token bucket gets tokens back, at most those that were missing when it was last
// taken from. A fixed window forgets hits of the current window. Limiters without a log know no
// ids: ErrNoIDs.
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
	case stateObject:
		if id != nil {
			return 0, ErrNoIDs
		}
		return tx.refundState(k, o, n), nil
	}
	return 0, ErrWrongType
}

func (tx *Tx) refundNewest(k Key, o *zsetObject, n int64) int64 {
	size := o.set.Len()
	n = min(n, int64(size))
	tx.apply(o, &Effect{Kind: EffectRemoveSpan, Key: k, Lo: size - int(n), Hi: size})
	return n
}

// refundNamed finds the hits of a call by their names, and by their score, which is that of the
// first: a name may have been written by hand. The others stand behind the first; some may have
// been given back as the newest, so their numbers need not be in a row.
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

func (tx *Tx) refundState(k Key, o stateObject, n int64) int64 {
	f := &Effect{Key: k, ExpireAt: o.head().expireAt}
	back, used := o.refund(f, tx.now, n)
	switch {
	case back == 0:
	case used:
		tx.apply(o, f)
	default:
		tx.delete(k, o)
	}
	return back
}
