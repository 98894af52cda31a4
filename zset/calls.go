package zset

import (
	"bytes"
	"cmp"
	"math"
	"slices"

	"rlserver/zset/hitlog"
)

// MaxNumber is the greatest number of a member of a call, see AddCall.
const MaxNumber = hitlog.MaxNumber

// MaxTime is the last time of hits, Unix ms.
const MaxTime = maxName

// AddCall adds n members with the score at, as a call with an id has them: id, id:2, id:3, …, from
// the number lo on, at least 1. The first is id:1 if the id itself could be the name of another
// hit. None of them is in the set. It takes a few bytes, however large n is.
func (s *Set) AddCall(at int64, id []byte, lo, n uint64) {
	s.hits().AddCall(s.hash, at, id, lo, lo+n)
}

// RemoveCall removes members that AddCall has added with the score at, which it has.
func (s *Set) RemoveCall(at int64, id []byte, lo, n uint64) {
	if s.log != nil {
		s.log.RemoveCall(at, id, lo, lo+n)
	}
}

// AppendCallName appends the name of the member with a number of a call with an id, see AddCall.
func AppendCallName(dst, id []byte, number uint64) []byte { return hitlog.AppendName(dst, id, number) }

// CallScore returns the score of the first member of a call with an id, and whether it is in the
// set.
func (s *Set) CallScore(id []byte) (score float64, ok bool) {
	var buf [64]byte
	return s.Score(hitlog.AppendName(buf[:0], id, 1))
}

// CallNumbers returns ranges [lo,hi) of numbers, in order: those of members that AddCall has added
// for an id, at a time.
func (s *Set) CallNumbers(id []byte, at int64) (numbers [][2]uint64) {
	if s.log != nil {
		s.log.Call(id, func(t int64, lo, hi uint64) {
			if t == at {
				numbers = append(numbers, [2]uint64{lo, hi})
			}
		})
	}
	return numbers
}

// NamedOthers returns the members with a score and the name of a hit of a call with an id, other
// than those of AddCall and the first, at most n.
func (s *Set) NamedOthers(id []byte, score float64, n int64) (names [][]byte) {
	if s.rest.len() == 0 {
		return nil
	}
	prefix := append(bytes.Clone(id), ':')
	lo := s.rest.rank(&cut{belowElement, score, append(bytes.Clone(prefix), '0')})
	hi := s.rest.rank(&cut{belowElement, score, append(bytes.Clone(prefix), '9'+1)})
	for ; hi > lo && int64(len(names)) < n; hi-- {
		member, _ := s.rest.at(hi - 1)
		if named, number, ok := hitlog.Named(member); ok && number > 1 && bytes.Equal(named, id) {
			names = append(names, bytes.Clone(member))
		}
	}
	return names
}

// FreeNumbers returns ranges [lo,hi) of n numbers so that no member has the name of a hit with such
// a number of a call with an id. There may be fewer, only if very many are taken.
func (s *Set) FreeNumbers(id []byte, n uint64) (free [][2]uint64) {
	next := uint64(1)
	for _, taken := range append(s.taken(id, n), [2]uint64{MaxNumber + 1, math.MaxUint64}) {
		if k := min(n, max(taken[0], next)-next); k > 0 {
			free = append(free, [2]uint64{next, next + k})
			if n -= k; n == 0 {
				break
			}
		}
		next = max(next, taken[1])
	}
	return free
}

// taken returns the ranges of the numbers of members with names of hits of a call with an id, in
// order, as far as they concern n free ones.
func (s *Set) taken(id []byte, n uint64) (taken [][2]uint64) {
	if s.log != nil {
		s.log.Call(id, func(_ int64, lo, hi uint64) { taken = append(taken, [2]uint64{lo, hi}) })
	}
	byLow := func(a, b [2]uint64) int { return cmp.Compare(a[0], b[0]) }
	slices.SortFunc(taken, byLow)
	switch others := s.rest.len(); {
	case others == 0:
		return taken
	case n > uint64(others):
		s.rest.ascend(0, func(member []byte, _ float64) bool {
			if named, number, ok := hitlog.Named(member); ok && bytes.Equal(named, id) {
				taken = append(taken, [2]uint64{number, number + 1})
			}
			return true
		})
	default:
		taken = s.takenSingly(taken, id, n)
	}
	slices.SortFunc(taken, byLow)
	return taken
}

// takenSingly appends the numbers that other members than those of taken have to it.
func (s *Set) takenSingly(taken [][2]uint64, id []byte, n uint64) [][2]uint64 {
	var buf []byte
	inLog := taken
	for number := uint64(1); n > 0; number++ {
		for len(inLog) > 0 && inLog[0][0] <= number {
			number = max(number, inLog[0][1])
			inLog = inLog[1:]
		}
		buf = hitlog.AppendName(buf[:0], id, number)
		if _, _, has := s.rest.lookup(buf); has {
			taken = append(taken, [2]uint64{number, number + 1})
		} else {
			n--
		}
	}
	return taken
}

// CallParts returns how many parts the calls of AddCall are in.
func (s *Set) CallParts() int {
	if s.log == nil {
		return 0
	}
	return s.log.CallParts()
}

// VisitCalls visits the calls of a part, below CallParts: with n members for which AddCall could be
// called. The ids stay valid.
func (s *Set) VisitCalls(part int, visit func(at int64, id []byte, lo, n uint64)) {
	s.log.VisitCalls(part, func(at int64, id []byte, lo, hi uint64) { visit(at, id, lo, hi-lo) })
}
