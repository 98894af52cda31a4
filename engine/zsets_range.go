package engine

import (
	"math"
	"math/rand/v2"

	"rlserver/zset"
)

// ZBy says what the two ends of a ZRange are.
type ZBy uint8

const (
	ZByRank ZBy = iota
	ZByScore
	ZByLex
)

// ZRange says which members of a sorted set are meant, and in which order. The zero value is the
// first one.
type ZRange struct {
	By ZBy
	// ZByRank: from the first of that order, 0, to the last, included; negative: counted from the
	// end, -1 is the last
	Start, Stop int64
	Scores      zset.ScoreRange // ZByScore
	Lex         zset.LexRange   // ZByLex, which makes sense if all scores are equal
	Reverse     bool            // from the greatest to the least

	Limited bool // of what ZByScore or ZByLex find,
	// only Count after the first Offset; negative Offset: none, negative Count: all
	Offset, Count int64
}

// ends gives the ranks of the range in a set, from lo up to but not hi, both 0 if there are none.
func (r *ZRange) ends(set *zset.Set) (lo, hi int) {
	switch r.By {
	case ZByScore:
		lo, hi = set.ScoreSpan(r.Scores)
	case ZByLex:
		lo, hi = set.LexSpan(r.Lex)
	default:
		return r.ranks(set.Len())
	}
	if r.Limited {
		lo, hi = r.limit(lo, hi)
	}
	return lo, max(lo, hi)
}

// ranks are the ends of a ZByRank range among n members.
func (r *ZRange) ranks(n int) (lo, hi int) {
	start, stop := r.Start, r.Stop
	if start < 0 {
		start = max(0, start+int64(n))
	}
	if stop < 0 {
		stop += int64(n)
	}
	stop = min(stop, int64(n)-1)
	if start > stop {
		return 0, 0
	}
	lo, hi = int(start), int(stop)+1
	if r.Reverse {
		lo, hi = n-hi, n-lo
	}
	return lo, hi
}

// limit cuts what the limit leaves out off the ends.
func (r *ZRange) limit(lo, hi int) (int, int) {
	n := int64(hi - lo)
	if r.Offset < 0 || r.Offset >= n {
		return 0, 0
	}
	skip, keep := int(r.Offset), int(n-r.Offset)
	if r.Count >= 0 && r.Count < int64(keep) {
		keep = int(r.Count)
	}
	if r.Reverse {
		return hi - skip - keep, hi - skip
	}
	return lo + skip, lo + skip + keep
}

// Count is how many members the range has.
func (z ZSet) Count(r *ZRange) int {
	if z.set == nil {
		return 0
	}
	lo, hi := r.ends(z.set)
	return hi - lo
}

// Range gives the members of a range. What comes before them is not walked.
func (z ZSet) Range(r *ZRange) ZMembers {
	if z.set == nil {
		return ZMembers{}
	}
	lo, hi := r.ends(z.set)
	return z.between(lo, hi, r.Reverse)
}

// between gives the members of the ranks from lo up to but not hi.
func (z ZSet) between(lo, hi int, reverse bool) ZMembers {
	return ZMembers{set: z.set, lo: lo, hi: hi, reverse: reverse}
}

// ZRemRange removes the members of a range and returns how many there were. A sorted set without
// members is no key.
func (tx *Tx) ZRemRange(k Key, r *ZRange) (removed int, err error) {
	o, z, err := tx.zset(k)
	if z.set == nil {
		return 0, err
	}
	lo, hi := r.ends(z.set)
	if lo < hi {
		tx.apply(o, &Effect{Kind: EffectRemoveSpan, Key: k, Lo: lo, Hi: hi})
	}
	return hi - lo, nil
}

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

// ZUnion gives the members that any of the sets has, in order. Their scores are multiplied by the
// weight of the set that they are from, and those of one member are aggregated. Weights are one for
// each set, or nil: all are 1.
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

// ZInterCard is how many members all the sets have. It stops counting at the limit, if that is not
// 0.
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

// Random picks a member, each with the same chance; ok is false if there is none.
func (z ZSet) Random(r *rand.Rand) (member []byte, ok bool) {
	if z.Len() == 0 {
		return nil, false
	}
	member, _ = z.set.At(r.IntN(z.Len()))
	return member, true
}

// Sample picks n different members, or all if there are no more than n. Each choice of n has the
// same chance; their order means nothing.
func (z ZSet) Sample(r *rand.Rand, n int64) ZMembers {
	if z.set == nil {
		return ZMembers{}
	}
	if n >= int64(z.Len()) {
		return z.between(0, z.Len(), false)
	}
	return ZMembers{set: z.set, ranks: differentRanks(r, int(n), z.Len())}
}

// differentRanks picks k of the numbers below n by Robert Floyd's algorithm (CACM 30:9, 1987), in
// time and memory that do not depend on n.
func differentRanks(r *rand.Rand, k, n int) []int {
	ranks := make([]int, 0, k)
	taken := make(map[int]struct{}, k)
	for last := n - k; last < n; last++ {
		rank := r.IntN(last + 1)
		if _, again := taken[rank]; again {
			rank = last
		}
		taken[rank] = struct{}{}
		ranks = append(ranks, rank)
	}
	return ranks
}

// Pick picks a member n times, each time any with the same chance. It gives none only if there is
// none.
func (z ZSet) Pick(r *rand.Rand, n int) ZMembers {
	if z.Len() == 0 {
		return ZMembers{}
	}
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = r.IntN(z.Len())
	}
	return ZMembers{set: z.set, ranks: ranks}
}
