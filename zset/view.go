package zset

import (
	"math/rand/v2"
	"slices"

	"rlserver/internal/dict"
)

// View is a read-only view of the sorted set of a key. The zero value is an empty set, that of a
// missing key. A view and the members that it returns are valid until the set's next change.
type View struct {
	set   *Set
	plain *plain // instead of set
}

// plain is a set without scores, as an operand.
type plain struct {
	hash    *dict.Hasher
	members []string
}

// ViewOf returns a view of a set.
func ViewOf(set *Set) View { return View{set: set} }

// Plain returns a view of different members, whose scores are 1, as an operand of unions,
// intersections and differences. The sorted set is only made when they are computed. The view stays
// valid.
func Plain(h *dict.Hasher, members []string) View { return View{plain: &plain{h, members}} }

// IsPlain reports whether the sorted set has yet to be made.
func (z View) IsPlain() bool { return z.plain != nil }

// operand returns the sorted set, nil if it is empty.
func (z View) operand() *Set {
	if z.plain == nil {
		return z.set
	}
	slices.Sort(z.plain.members)
	set := New(z.plain.hash)
	for _, m := range z.plain.members {
		set.Add([]byte(m), 1)
	}
	return set
}

// Len returns the number of members.
func (z View) Len() int {
	if z.plain != nil {
		return len(z.plain.members)
	}
	if z.set == nil {
		return 0
	}
	return z.set.Len()
}

// Writable is that of all members.
func (z View) Writable() bool { return z.set.writable() }

// Scannable reports whether a Scan with these arguments visits at most MaxWritten hits and count
// others. It does not if a single millisecond has more.
func (z View) Scannable(cursor uint64, count int) bool {
	if z.Writable() || cursor >= scanIndex {
		return true
	}
	first := z.set.log.After(int64(max(cursor, 1)) - 2)
	last := min(first+max(1, count), z.set.log.Len()) - 1
	return last < first || z.set.log.After(z.set.log.TimeAt(last))-first <= MaxWritten
}

// Score returns the score of a member; ok is false if it is missing.
func (z View) Score(member []byte) (score float64, ok bool) {
	if z.set == nil {
		return 0, false
	}
	return z.set.Score(member)
}

// Rank returns how many members come before a member, from the lowest or from the greatest score,
// and its score; ok is false if it is missing.
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

// Scan visits about count members from the cursor on, and returns the cursor at which to continue,
// 0 after the last. A scan begins with 0. A member that exists throughout is visited at least once.
func (z View) Scan(cursor uint64, count int, visit func(member []byte, score float64)) (next uint64) {
	if z.set == nil {
		return 0
	}
	return z.set.Scan(cursor, count, visit)
}

// Span returns the ranks [lo,hi) of a range; both are 0 if it has no members.
func (z View) Span(r *Range) (lo, hi int) {
	if z.set == nil {
		return 0, 0
	}
	return r.ends(z.set)
}

// Count returns the number of members in a range.
func (z View) Count(r *Range) int {
	lo, hi := z.Span(r)
	return hi - lo
}

// Range returns the members of a range. It does not walk over those before them.
func (z View) Range(r *Range) Members {
	lo, hi := z.Span(r)
	return z.Between(lo, hi, r.Reverse)
}

// Between returns the members of the ranks [lo,hi).
func (z View) Between(lo, hi int, reverse bool) Members {
	return Members{set: z.set, lo: lo, hi: hi, reverse: reverse}
}

// Random returns a random member, each with the same probability; ok is false if the set is empty.
func (z View) Random(r *rand.Rand) (member []byte, ok bool) {
	if z.Len() == 0 {
		return nil, false
	}
	member, _ = z.set.At(r.IntN(z.Len()))
	return member, true
}

// Sample returns n different members, or all if there are at most n, in no particular order. Each
// set of n members has the same probability.
func (z View) Sample(r *rand.Rand, n int64) Members {
	if z.set == nil {
		return Members{}
	}
	if n >= int64(z.Len()) {
		return z.Between(0, z.Len(), false)
	}
	return Members{set: z.set, ranks: DifferentRanks(r, int(n), z.Len())}
}

// DifferentRanks returns k random numbers below n, all different, by Robert Floyd's algorithm (CACM
// 30:9, 1987), in time and memory that do not depend on n.
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

// Pick returns n random members, with repetitions, each with the same probability; none if the set
// is empty.
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

// Keep returns a view of the sorted set as it is now, for one goroutine: later changes do not
// affect it. It takes nearly constant time, but the next changes of the set copy the parts that
// they change.
func (z View) Keep() View {
	if z.set == nil {
		return z
	}
	return View{set: z.set.Clone()}
}

// Members returns all members, from the lowest score on.
func (z View) Members() Members { return z.Between(0, z.Len(), false) }
