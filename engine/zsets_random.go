package engine

import (
	"math/rand/v2"
)

// Random picks a member, each with the same chance; ok is false if there is none.
func (z ZSet) Random(r *rand.Rand) (member []byte, ok bool) {
	if z.Len() == 0 {
		return nil, false
	}
	member, _ = z.set.At(r.IntN(z.Len()))
	return member, true
}

// Sample picks n different members, or all if there are no more than n. Each choice of n has the same chance; their order means nothing.
func (z ZSet) Sample(r *rand.Rand, n int64) ZMembers {
	if z.set == nil {
		return ZMembers{}
	}
	if n >= int64(z.Len()) {
		return z.between(0, z.Len(), false)
	}
	return ZMembers{set: z.set, ranks: differentRanks(r, int(n), z.Len())}
}

// differentRanks picks k of the numbers below n by Robert Floyd's algorithm (CACM 30:9, 1987), in time and memory that do not depend on n.
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

// Pick picks a member n times, each time any with the same chance. It gives none only if there is none.
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
