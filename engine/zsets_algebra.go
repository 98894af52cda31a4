package engine

import (
	"math"

	"rlserver/zset"
)

// ZSets finds several keys' sorted sets, of which each may come more than once.
func (tx *Tx) ZSets(keys []Key) (sets []ZSet, err error) {
	sets = make([]ZSet, len(keys))
	for i, k := range keys {
		if sets[i], err = tx.ZSet(k); err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// ZUnion gives the members that any of the sets has, in order. Their scores are multiplied by the weight of the set that they are from, and
// those of one member are aggregated. Weights are one for each set, or nil: all are 1.
func (tx *Tx) ZUnion(sets []ZSet, weights []float64, how zset.Aggregate) ZMembers {
	return whole(zset.Union(&tx.e.hasher, weighted(sets, weights), how))
}

// ZInter gives the members that all the sets have, with scores as those of ZUnion.
func (tx *Tx) ZInter(sets []ZSet, weights []float64, how zset.Aggregate) ZMembers {
	return whole(zset.Intersect(&tx.e.hasher, weighted(sets, weights), how))
}

// ZDiff gives the members, with their scores, that the first set has and none of the others.
func (tx *Tx) ZDiff(sets []ZSet) ZMembers {
	return whole(zset.Diff(&tx.e.hasher, plain(sets)))
}

// ZInterCard is how many members all the sets have. It stops counting at the limit, if that is not 0.
func (tx *Tx) ZInterCard(sets []ZSet, limit int64) int {
	return zset.IntersectCount(&tx.e.hasher, plain(sets), int(min(limit, math.MaxInt)))
}

// whole gives the members of a set that was made for that.
func whole(set *zset.Set) ZMembers { return ZMembers{set: set, hi: set.Len(), fresh: true} }

func weighted(sets []ZSet, weights []float64) []zset.Weighted {
	operands := make([]zset.Weighted, len(sets))
	for i, z := range sets {
		operands[i] = zset.Weighted{Set: z.set, Weight: 1}
		if weights != nil {
			operands[i].Weight = weights[i]
		}
	}
	return operands
}

func plain(sets []ZSet) []*zset.Set {
	operands := make([]*zset.Set, len(sets))
	for i, z := range sets {
		operands[i] = z.set
	}
	return operands
}
