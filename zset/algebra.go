package zset

import (
	"cmp"
	"math"
	"slices"

	"rlserver/internal/dict"
)

// Weighted is an operand of Union and Intersect: a set and the factor of its scores. A nil Set is
// empty.
type Weighted struct {
	Set    *Set
	Weight float64
}

// Aggregate is how the scores of one member are combined.
type Aggregate uint8

// AGGREGATE SUM, MIN and MAX of Redis.
const (
	Sum Aggregate = iota
	Min
	Max
)

// of aggregates two scores. As in Redis, the sum of opposite infinities is 0, and of equal scores
// the first is kept.
func (a Aggregate) of(x, y float64) float64 {
	switch {
	case a == Sum:
		return orZero(x + y)
	case a == Min && y < x, a == Max && y > x:
		return y
	default:
		return x
	}
}

func orZero(x float64) float64 {
	if math.IsNaN(x) {
		return 0
	}
	return x
}

// Union returns a new set of the members of any operand, each with its weighted scores aggregated.
// Infinity times 0 is 0. Operands are processed by size, the smallest first, as in Redis: the order
// can affect a sum of floats.
func Union(h *dict.Hasher, in []Weighted, agg Aggregate) *Set {
	in = bySize(in)
	if len(in) == 0 {
		return New(h)
	}
	all := newMembers(h, in[len(in)-1].Set.Len())
	for _, w := range in {
		for member, score := range w.Set.Ascend(0, w.Set.Len()) {
			score = orZero(score * w.Weight)
			if number, hash := all.find(member); number < 0 {
				all.add(hash, element{member, score})
			} else {
				all.elements[number].score = agg.of(all.elements[number].score, score)
			}
		}
	}
	return build(h, all.elements)
}

// Intersect returns a new set of the members that all operands have, each with
// its weighted scores aggregated, as in Union. Without operands it returns an empty set.
func Intersect(h *dict.Hasher, in []Weighted, agg Aggregate) *Set {
	sorted := bySize(in)
	if len(sorted) == 0 || len(sorted) < len(in) {
		return New(h)
	}
	var others []*Set
	for _, w := range sorted[1:] {
		others = append(others, w.Set)
	}
	found := elementsOf(sorted[0].Set)
	for i := range found {
		found[i].score = orZero(found[i].score * sorted[0].Weight)
	}
	for i, w := range sorted[1:] {
		found = inBoth(
			h,
			found,
			w.Set,
			others[i:],
			func(score, other float64) float64 { return agg.of(score, other*w.Weight) },
		)
	}
	return build(h, found)
}

// IntersectCount returns how many members all sets have, counting up to limit;
// 0 is no limit. A nil set is empty.
func IntersectCount(h *dict.Hasher, in []*Set, limit int) (n int) {
	in = slices.SortedFunc(slices.Values(in), func(a, b *Set) int { return cmp.Compare(a.size(), b.size()) })
	if len(in) == 0 || in[0].size() == 0 {
		return 0
	}
	if !lookUp(in[0].Len(), in[1:]) {
		found := elementsOf(in[0])
		for _, s := range in[1:] {
			found = inBoth(h, found, s, []*Set{s}, func(score, _ float64) float64 { return score })
		}
		return limited(len(found), limit)
	}
members:
	for member := range in[0].Ascend(0, in[0].Len()) {
		for _, s := range in[1:] {
			if _, ok := s.Score(member); !ok {
				continue members
			}
		}
		if n++; n == limit {
			break
		}
	}
	return n
}

func limited(n, limit int) int {
	if limit > 0 {
		return min(n, limit)
	}
	return n
}

// Diff returns a new set of the elements of the first set whose members no other set has. A nil set
// is empty.
func Diff(h *dict.Hasher, in []*Set) *Set {
	if len(in) == 0 || in[0].size() == 0 {
		return New(h)
	}
	others := slices.DeleteFunc(slices.Clone(in[1:]), func(s *Set) bool { return s.size() == 0 })
	found := elementsOf(in[0])
	if lookUp(len(found), others) {
		return build(h, slices.DeleteFunc(found, func(e element) bool {
			return slices.ContainsFunc(others, func(s *Set) bool { _, ok := s.Score(e.member); return ok })
		}))
	}
	t, gone := tableOf(h, found), make([]bool, len(found))
	for _, s := range others {
		for member := range s.Ascend(0, s.Len()) {
			if number, _ := t.find(member); number >= 0 {
				gone[number] = true
			}
		}
	}
	return build(h, without(found, gone))
}

// inBoth returns those elements whose members s has too, with a score computed from both.
func inBoth(h *dict.Hasher, found []element, s *Set, others []*Set, score func(a, b float64) float64) []element {
	gone := make([]bool, len(found))
	if lookUp(len(found), others) {
		for i, e := range found {
			other, ok := s.Score(e.member)
			found[i].score, gone[i] = score(e.score, other), !ok
		}
		return without(found, gone)
	}
	t := tableOf(h, found)
	for i := range gone {
		gone[i] = true
	}
	for member, other := range s.Ascend(0, s.Len()) {
		if number, _ := t.find(member); number >= 0 {
			found[number].score, gone[number] = score(found[number].score, other), false
		}
	}
	return without(found, gone)
}

// lookUp reports whether looking up n members in sets is cheaper than walking through the sets: it
// is if they are much larger, unless they are clones without indexes.
func lookUp(n int, sets []*Set) bool {
	const cost = 8 // of one lookup, in steps of a walk
	walk := 0
	for _, s := range sets {
		if s.rest != nil && s.rest.unindexed {
			return false
		}
		walk += s.Len()
	}
	return n < walk/cost || n <= fewLookUps
}

// fewLookUps is up to how many members are always looked up.
const fewLookUps = 64

// elementsOf returns the elements of a set.
func elementsOf(s *Set) []element {
	found := make([]element, 0, s.Len())
	for member, score := range s.Ascend(0, s.Len()) {
		found = append(found, element{member, score})
	}
	return found
}

// without returns the elements that are not gone, in the same array.
func without(elements []element, gone []bool) []element {
	kept := elements[:0]
	for i, e := range elements {
		if !gone[i] {
			kept = append(kept, e)
		}
	}
	return kept
}

// size is the length of a set that may be nil.
func (s *Set) size() int {
	if s == nil {
		return 0
	}
	return s.Len()
}

// bySize returns the operands that are not empty, the smallest first.
func bySize(in []Weighted) []Weighted {
	in = slices.DeleteFunc(slices.Clone(in), func(w Weighted) bool { return w.Set.size() == 0 })
	slices.SortStableFunc(in, func(a, b Weighted) int { return cmp.Compare(a.Set.Len(), b.Set.Len()) })
	return in
}
