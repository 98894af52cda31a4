package engine

import (
	"math"
	"slices"

	"rlserver/engine/effect"
	"rlserver/engine/object"
	"rlserver/zset"
)

// ZSet returns the sorted set that a key holds.
func (tx *Tx) ZSet(k Key) (zset.View, error) {
	_, z, err := tx.zset(k)
	return z, err
}

// zset is ZSet for callers that apply effects to the object.
func (tx *Tx) zset(k Key) (object.Object, zset.View, error) {
	o := tx.lookup(k)
	z, err := as[*object.ZSet](o)
	return o, z.View(), err
}

// ZAdd sets the scores of those members for which the conditions hold, and returns how many were
// added and how many existing scores changed. No score is NaN. A missing key is an empty sorted
// set.
func (tx *Tx) ZAdd(k Key, conditions zset.AddIf, members []zset.Member) (added, changed int, err error) {
	o, z, err := tx.zset(k)
	if err != nil {
		return 0, 0, err
	}
	for _, m := range members {
		old, exists := z.Score(m.Member)
		if exists && old == m.Score || !conditions.Hold(exists, old, m.Score) {
			continue
		}
		o = tx.apply(o, &effect.Effect{Kind: effect.Add, Key: k, Field: m.Member, Score: kept(m.Score)})
		z = object.ZSetIn(o)
		if exists {
			changed++
		} else {
			added++
		}
	}
	return added, changed, nil
}

// kept returns a score as sorted sets store it: -0 becomes 0, as in Redis' small ones.
func kept(score float64) float64 {
	if score == 0 {
		return 0 // not -0, which is equal but is printed differently
	}
	return score
}

// ZIncrBy adds to a member's score, which is 0 for a missing member, and returns the new score; ok
// is false if the conditions do not hold. A sum of opposite infinities is ErrScoreNaN.
func (tx *Tx) ZIncrBy(k Key, conditions zset.AddIf, member []byte, by float64) (score float64, ok bool, err error) {
	o, z, err := tx.zset(k)
	if err != nil {
		return 0, false, err
	}
	old, exists := z.Score(member)
	score = by
	if exists {
		score += old
	}
	if !conditions.Hold(exists, old, score) {
		return 0, false, nil
	}
	if math.IsNaN(score) {
		return 0, false, ErrScoreNaN
	}
	if !exists || score != old {
		tx.apply(o, &effect.Effect{Kind: effect.Add, Key: k, Field: member, Score: kept(score)})
	}
	return score, true, nil
}

// ZRem removes members and returns how many existed. A sorted set without members is deleted.
func (tx *Tx) ZRem(k Key, members [][]byte) (removed int, err error) {
	if _, err = tx.ZSet(k); err != nil {
		return 0, err
	}
	return tx.removeEach(k, effect.Remove, members), nil
}

// ZPop removes up to n members from one end of the first non-empty sorted set among the keys. It
// passes them to see before it removes them; found is false if all keys are missing. Keys after
// that one are not checked. A sorted set without members is deleted.
func (tx *Tx) ZPop(
	keys []Key, n int64, fromGreatest bool, see func(from Key, popped zset.Members),
) (found bool, err error) {
	for _, k := range keys {
		z, err := tx.ZSet(k)
		if err != nil {
			return false, err
		}
		if z.Len() == 0 {
			continue
		}
		lo, hi := 0, int(min(n, int64(z.Len())))
		if fromGreatest {
			lo, hi = z.Len()-hi, z.Len()
		}
		see(k, z.Between(lo, hi, fromGreatest))
		tx.RemoveSpan(k, lo, hi)
		return true, nil
	}
	return false, nil
}

// ZStore stores members under a key, replaces its value, and returns how many there are. Without
// members the key is deleted. The members may be those of the sorted set that the key holds.
func (tx *Tx) ZStore(dst Key, members zset.Members) (stored int) {
	if members.Len() == 0 {
		tx.Delete(dst)
		return 0
	}
	members = tx.Prepare(members)
	set, packed := members.Prepared()
	tx.apply(tx.find(tx.db, dst), &effect.Effect{Kind: effect.ZSet, Key: dst, Value: packed, Set: set})
	return members.Len()
}

// RoomToStore returns ErrOutOfMemory if the budget has no room for the members under a key.
func (tx *Tx) RoomToStore(dst Key, members zset.Members) error {
	if !tx.roomToStore(tx.db, dst, members.Weight()) {
		return ErrOutOfMemory
	}
	return nil
}

// Operations that take long are computed from clones of the sorted sets, after the locks are
// released. To store the result, the sources must not have changed since, see Watch.

// Prepare does the part of ZStore that takes long, and needs no lock. Its result may be stored
// once.
func (tx *Tx) Prepare(m zset.Members) zset.Members {
	return m.Prepare(&tx.e.hasher, tx.e.journal != nil)
}

// ZRemRange removes the members of a range and returns how many there were. A sorted set without
// members is deleted.
func (tx *Tx) ZRemRange(k Key, r *zset.Range) (removed int, err error) {
	z, err := tx.ZSet(k)
	if err != nil {
		return 0, err
	}
	lo, hi := z.Span(r)
	tx.RemoveSpan(k, lo, hi)
	return hi - lo, nil
}

// ZSets returns the sorted sets of several keys as operands; a key may occur more than once. The
// members of a set have the score 1.
func (tx *Tx) ZSets(keys []Key) (sets []zset.View, err error) {
	sets = make([]zset.View, len(keys))
	for i, k := range keys {
		if s, ok := tx.peek(k).(*object.Set); ok {
			sets[i] = zset.Plain(&tx.e.hasher, slices.Collect(s.View().All()))
		} else if sets[i], err = tx.ZSet(k); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// ZUnion returns the members of any of the sets, in order. Scores are multiplied by the weight of
// their set, and the scores of one member are aggregated. There is one weight for each set; nil:
// all are 1.
func (tx *Tx) ZUnion(sets []zset.View, weights []float64, how zset.Aggregate) zset.Members {
	return zset.Whole(zset.Union(&tx.e.hasher, zset.Operands(sets, weights), how))
}

// ZInter returns the members that all sets have, with scores as in ZUnion.
func (tx *Tx) ZInter(sets []zset.View, weights []float64, how zset.Aggregate) zset.Members {
	return zset.Whole(zset.Intersect(&tx.e.hasher, zset.Operands(sets, weights), how))
}

// ZDiff returns the members of the first set that no other set has, with their scores.
func (tx *Tx) ZDiff(sets []zset.View) zset.Members {
	return zset.Whole(zset.Diff(&tx.e.hasher, zset.Sets(sets)))
}

// ZInterCard returns how many members all sets have. It stops counting at the limit, unless that is
// 0.
func (tx *Tx) ZInterCard(sets []zset.View, limit int64) int {
	return zset.IntersectCount(&tx.e.hasher, zset.Sets(sets), int(min(limit, math.MaxInt)))
}
