package zset

import "math/rand/v2"

// View shows the sorted set that a key holds: it changes nothing. The zero View is what a
// missing key holds, an empty set. It is valid until the set's next change, and so are the members
// it gives.
type View struct{ set *Set }

// ViewOf shows a set.
func ViewOf(set *Set) View { return View{set} }

// Len is how many members there are.
func (z View) Len() int {
	if z.set == nil {
		return 0
	}
	return z.set.Len()
}

// Score is that of a member; ok is false if there is no such member.
func (z View) Score(member []byte) (score float64, ok bool) {
	if z.set == nil {
		return 0, false
	}
	return z.set.Score(member)
}

// Rank is how many members come before this one, from the least score on or from the greatest.
func (z View) Rank(member []byte, fromGreatest bool) (rank int, score float64, ok bool) {
	if z.set == nil {
		return 0, 0, false
	}
	rank, score, ok = z.set.Rank(member)
	if ok && fromGreatest {
		rank = z.set.Len() - 1 - rank
	}
	return rank, score, ok
}

// Scan visits about count members from the cursor on, and returns the cursor to go on from, 0 after
// the last. 0 begins. A member that is there throughout is visited at least once.
func (z View) Scan(cursor uint64, count int, visit func(member []byte, score float64)) (next uint64) {
	if z.set == nil {
		return 0
	}
	return z.set.Scan(cursor, count, visit)
}

// Span gives the ranks of a range, from lo up to but not hi; both are 0 if it has no members.
func (z View) Span(r *Range) (lo, hi int) {
	if z.set == nil {
		return 0, 0
	}
	return r.ends(z.set)
}

// Count is how many members the range has.
func (z View) Count(r *Range) int {
	lo, hi := z.Span(r)
	return hi - lo
}

// Range gives the members of a range. What comes before them is not walked.
func (z View) Range(r *Range) Members {
	lo, hi := z.Span(r)
	return z.Between(lo, hi, r.Reverse)
}

// Between gives the members of the ranks from lo up to but not hi.
func (z View) Between(lo, hi int, reverse bool) Members {
	return Members{set: z.set, lo: lo, hi: hi, reverse: reverse}
}

// Random picks a member, each with the same probability; ok is false if the set is empty.
func (z View) Random(r *rand.Rand) (member []byte, ok bool) {
	if z.Len() == 0 {
		return nil, false
	}
	member, _ = z.set.At(r.IntN(z.Len()))
	return member, true
}

// Sample picks n different members, or all if there are no more than n. Each choice of n has the
// same chance; their order means nothing.
func (z View) Sample(r *rand.Rand, n int64) Members {
	if z.set == nil {
		return Members{}
	}
	if n >= int64(z.Len()) {
		return z.Between(0, z.Len(), false)
	}
	return Members{set: z.set, ranks: DifferentRanks(r, int(n), z.Len())}
}

// DifferentRanks picks k of the numbers below n by Robert Floyd's algorithm (CACM 30:9, 1987), in
// time and memory that do not depend on n.
func DifferentRanks(r *rand.Rand, k, n int) []int {
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
func (z View) Pick(r *rand.Rand, n int) Members {
	if z.Len() == 0 {
		return Members{}
	}
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = r.IntN(z.Len())
	}
	return Members{set: z.set, ranks: ranks}
}

// Keep gives the sorted set as it is now, to be looked at by one goroutine for as long as it likes:
// what changes later does not show. It costs next to nothing, but makes the next changes copy what
// they change.
func (z View) Keep() View {
	if z.set == nil {
		return z
	}
	return View{z.set.Clone()}
}

// Members are all members, from the least score on.
func (z View) Members() Members { return z.Between(0, z.Len(), false) }
