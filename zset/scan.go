package zset

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"rlserver/zset/hitlog"
)

const (
	// scanWhole is the size up to which a set is visited in one call.
	scanWhole = 128
	// Cursors from 1 on are scores, each one above the next to visit; those from scanIndex on are
	// cursors of the index. All are below 2^53, so that a client can store them in a float64.
	scanIndex = maxName + 2
	// scanWalk is how many members of phase 2 count as one visited member.
	scanWalk = 1024
)

// Scan visits about count elements from the cursor on, and returns the cursor at which to continue.
// The first cursor is 0, and so is the one returned at the end; all are below 2^53. visit must not
// change the set.
//
// An element that is in the set from the first call to the last is visited at least once, and
// mostly exactly once, whatever is added, removed and changed between the calls. There are two
// phases, and the position of an element in its phase does not change while it stays in the set:
//
//  1. Members outside the index, by score. They have the score that they name, so they need no
//     index; when their score changes, they are added to it, and are visited in phase 2.
//  2. Members in the index, by hash. They stay in it until they are removed. A member that is added
//     to it during phase 2 was outside before and so was visited in phase 1.
//
// Sets of up to 128 members are visited as a whole, in order, whatever the cursor. In phase 1,
// members with the same score go together. In phase 2, the index knows a member's score but not the
// member, so a call walks over all members of that score. If there are very many, it visits more
// than count, one for every 1024 of them.
func (s *Set) Scan(cursor uint64, count int, visit func(member []byte, score float64)) (next uint64) {
	if s.Len() <= scanWhole {
		for member, score := range s.Ascend(0, s.Len()) {
			visit(member, score)
		}
		return 0
	}
	if s.rest != nil {
		s.rest.build()
	}
	count = max(1, count)
	if cursor < scanIndex {
		if cursor, count = s.scanNames(cursor, count, visit); count <= 0 {
			return cursor
		}
	}
	if s.rest == nil || s.rest.index == nil {
		return 0
	}
	if next = s.rest.scanIndexed(cursor-scanIndex, count, visit); next != 0 {
		next += scanIndex
	}
	return next
}

// scanNames is phase 1. It returns the next cursor, and the rest of count when the phase is over. A
// score without such a member counts as one, so that the time of a call is bounded.
func (s *Set) scanNames(cursor uint64, count int, visit func([]byte, float64)) (next uint64, left int) {
	for n := max(cursor, 1) - 1; s.outside() > 0; {
		if count <= 0 {
			return n + 1, 0
		}
		score := s.nextScore(float64(n))
		if score > maxName {
			break
		}
		visited := 0
		if n = uint64(math.Ceil(score)); float64(n) == score {
			visited = s.visitNames(n, visit)
			n++
		}
		count -= max(1, visited)
	}
	return scanIndex, count
}

// outside returns how many members are not in the index.
func (s *Set) outside() int {
	if s.rest == nil || s.rest.index == nil {
		return s.Len()
	}
	return s.Len() - s.rest.index.Len()
}

// nextScore returns the lowest score that is not below from, or infinity.
func (s *Set) nextScore(from float64) float64 {
	if i := s.rank(&cut{side: belowScore, score: from}); i < s.Len() {
		return s.ScoreAt(i)
	}
	return math.Inf(1)
}

// visitNames visits the members outside the index whose score is n: the hits, and those that are n
// itself or begin with it and a byte other than a digit.
func (s *Set) visitNames(n uint64, visit func([]byte, float64)) (visited int) {
	if s.rest != nil {
		visited = s.rest.visitNames(n, visit)
	}
	if s.log == nil {
		return visited
	}
	var names namer
	s.log.Ascend(s.log.After(int64(n)-1), s.log.After(int64(n)), func(h hitlog.Hit) bool {
		visit(names.member(h), float64(h.At))
		visited++
		return true
	})
	return visited
}

func (s *rest) visitNames(n uint64, visit func([]byte, float64)) (visited int) {
	digits := strconv.AppendUint(nil, n, 10)
	for _, from := range [][]byte{digits, append(digits, '9'+1)} {
		p := s.seq.find(&cut{belowElement, float64(n), from})
		s.seq.ascend(p, func(member []byte, score float64) bool {
			if named, ok := named(member); !ok || named != n || score != float64(n) {
				return false
			}
			if !s.isIndexed(member, score) {
				visit(member, score)
				visited++
			}
			return true
		})
	}
	return visited
}

// scanIndexed is phase 2. Cursors are those of the index.
func (s *rest) scanIndexed(cursor uint64, count int, visit func([]byte, float64)) (next uint64) {
	var batch []indexed
	visited := 0
	for next = cursor; count > 0; {
		batch = batch[:0]
		next = s.index.Scan(next, count, func(e indexed) { batch = append(batch, e) })
		visited += len(batch)
		count = s.visitIndexed(batch, visit)/scanWalk - visited
		if next == 0 {
			break
		}
	}
	return next
}

// visitIndexed visits the members that the entries name, and returns how
// many it walked over to find them.
func (s *rest) visitIndexed(batch []indexed, visit func([]byte, float64)) (walked int) {
	slices.SortFunc(batch, func(a, b indexed) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.hash, b.hash))
	})
	for len(batch) > 0 {
		n := 1
		for n < len(batch) && batch[n].score == batch[0].score {
			n++
		}
		walked += s.visitGroup(batch[:n], visit)
		batch = batch[n:]
	}
	return walked
}

// visitGroup visits the members of entries with one score, which are sorted by hash, and returns
// how many members have that score.
func (s *rest) visitGroup(group []indexed, visit func([]byte, float64)) (walked int) {
	score := group[0].score
	s.seq.ascend(s.seq.find(&cut{side: belowScore, score: score}), func(member []byte, found float64) bool {
		if found != score {
			return false
		}
		walked++
		_, in := slices.BinarySearchFunc(group, s.hash.Sum(member), func(e indexed, hash uint64) int {
			return cmp.Compare(e.hash, hash)
		})
		if in {
			visit(member, found)
		}
		return true
	})
	return walked
}
