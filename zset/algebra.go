package zset

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"rlserver/dict"
)

// Weighted is an operand of Union and Intersect: a set and what its scores are
// multiplied with. A nil Set is empty.
type Weighted struct {
	Set    *Set
	Weight float64
}

// Aggregate tells how the scores of one member are made one.
type Aggregate uint8

// What Redis calls AGGREGATE SUM, MIN and MAX.
const (
	Sum Aggregate = iota
	Min
	Max
)

// of aggregates two scores. As in Redis a sum that is not a number, that of
// opposite infinities, is 0, and the first score stands where neither is less.
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

// element is one of a result that is yet to be sorted. Member aliases an
// operand.
type element struct {
	member []byte
	score  float64
}

// Union returns a new set of the members of any operand, each with its
// weighted scores aggregated. Infinity times 0 is 0. Like Redis it takes the
// operands by size, the smallest first, which a sum of floats can tell.
func Union(h *dict.Hasher, in []Weighted, agg Aggregate) *Set {
	all := dict.New(func(e element) uint64 { return h.Sum(e.member) })
	for _, w := range bySize(in) {
		for member, score := range w.Set.Ascend(0, w.Set.Len()) {
			hash := h.Sum(member)
			is := func(e element) bool { return bytes.Equal(e.member, member) }
			score = orZero(score * w.Weight)
			if known, ok := all.Find(hash, is); ok {
				all.Replace(hash, is, element{member, agg.of(known.score, score)})
			} else {
				all.Insert(hash, element{member, score})
			}
		}
	}
	return collect(h, slices.Collect(all.All()))
}

// Intersect returns a new set of the members that all operands have, each with
// its weighted scores aggregated, as in Union. No operands have no members.
func Intersect(h *dict.Hasher, in []Weighted, agg Aggregate) *Set {
	sorted, found := bySize(in), []element(nil)
	if len(sorted) == 0 || len(sorted) < len(in) {
		return New(h)
	}
	first := sorted[0]
members:
	for member, score := range first.Set.Ascend(0, first.Set.Len()) {
		score = orZero(score * first.Weight)
		for _, w := range sorted[1:] {
			other, ok := w.Set.Score(member)
			if !ok {
				continue members
			}
			score = agg.of(score, other*w.Weight)
		}
		found = append(found, element{member, score})
	}
	return collect(h, found)
}

// IntersectCount returns how many members all sets have, counting up to limit;
// 0 is no limit. A nil set is empty.
func IntersectCount(in []*Set, limit int) (n int) {
	in = slices.SortedFunc(slices.Values(in), func(a, b *Set) int { return cmp.Compare(a.size(), b.size()) })
	if len(in) == 0 || in[0].size() == 0 {
		return 0
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

// Diff returns a new set of the elements of the first set whose members no
// other has. A nil set is empty.
func Diff(h *dict.Hasher, in []*Set) *Set {
	if len(in) == 0 || in[0].size() == 0 {
		return New(h)
	}
	var found []element
	for member, score := range in[0].Ascend(0, in[0].Len()) {
		has := func(s *Set) bool {
			if s == nil {
				return false
			}
			_, ok := s.Score(member)
			return ok
		}
		if !slices.ContainsFunc(in[1:], has) {
			found = append(found, element{member, score})
		}
	}
	return collect(h, found)
}

// size is the length of a set that may be nil.
func (s *Set) size() int {
	if s == nil {
		return 0
	}
	return s.Len()
}

// bySize returns the operands that are not empty, from the smallest on.
func bySize(in []Weighted) []Weighted {
	in = slices.DeleteFunc(slices.Clone(in), func(w Weighted) bool { return w.Set.size() == 0 })
	slices.SortStableFunc(in, func(a, b Weighted) int { return cmp.Compare(a.Set.Len(), b.Set.Len()) })
	return in
}

// collect builds a set of elements that have different members.
func collect(h *dict.Hasher, elements []element) *Set {
	slices.SortFunc(elements, func(a, b element) int {
		return cmp.Or(cmp.Compare(a.score, b.score), bytes.Compare(a.member, b.member))
	})
	s := New(h)
	for _, e := range elements {
		s.seq.push(e.member, e.score)
		if !selfScored(e.member, e.score) {
			s.enter(e.member, e.score)
		}
	}
	return s
}
