package zset

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

const (
	// scanWhole is the size up to which a set is scanned in one go.
	scanWhole = 128
	// Cursors from 1 on are scores, each one more than the next to visit; those
	// from scanIndex on are cursors of the index. All are below 2^53, so that
	// a client may hold them in a float64.
	scanIndex = maxName + 2
	// scanPasses is how often a scan walks over a group of equal scores.
	scanPasses = 256
)

// Scan visits count elements or so, beginning at the cursor, and returns the
// cursor to go on from. Both the first cursor and the one returned at the end
// are 0; all are below 2^53. Visit must not change the set.
//
// An element that is in the set from the first call to the last is visited
// at least once, and mostly just once, whatever comes, goes and moves between
// the calls. For there are two phases, and the place of an element in its
// phase does not change while it stays in the set:
//
//  1. Members outside the index, by score. They have the score that they name,
//     which is why they need no index; when their score changes they enter it,
//     to be met in phase 2.
//  2. Members in the index, by hash. They stay in it until they are removed. Who
//     enters it behind the scan, during phase 2, was outside and hence met
//     during phase 1.
//
// Sets of up to 128 members are visited as a whole, in order, whatever the
// cursor. In phase 1, members with the same score go together. In phase 2, the
// index knows a member's score but not the member, so a call walks over all
// members of that score; it visits so many at once that a whole scan walks
// over each at most 256 times.
func (s *Set) Scan(cursor uint64, count int, visit func(member []byte, score float64)) (next uint64) {
	if s.Len() <= scanWhole {
		for member, score := range s.Ascend(0, s.Len()) {
			visit(member, score)
		}
		return 0
	}
	s.build()
	count = max(1, count)
	if cursor < scanIndex {
		if cursor, count = s.scanNames(cursor, count, visit); count <= 0 {
			return cursor
		}
	}
	if s.index == nil {
		return 0
	}
	if next = s.scanIndexed(cursor-scanIndex, count, visit); next != 0 {
		next += scanIndex
	}
	return next
}

// scanNames is phase 1. It returns the next cursor, and what is left of count
// when the phase is over. A score that no such member has counts for one, so
// that the time of a call is bounded.
func (s *Set) scanNames(cursor uint64, count int, visit func([]byte, float64)) (next uint64, left int) {
	for n := max(cursor, 1) - 1; s.index == nil || s.index.Len() < s.Len(); {
		if count <= 0 {
			return n + 1, 0
		}
		score := math.Inf(1)
		s.seq.ascend(s.seq.find(&cut{side: belowScore, score: float64(n)}), func(_ []byte, s float64) bool {
			score = s
			return false
		})
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

// visitNames visits the members outside the index whose score is n. They are
// n itself or begin with it and a byte other than a digit.
func (s *Set) visitNames(n uint64, visit func([]byte, float64)) (visited int) {
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
func (s *Set) scanIndexed(cursor uint64, count int, visit func([]byte, float64)) (next uint64) {
	batch, next := s.batch(cursor, count)
	slices.SortFunc(batch, func(a, b indexed) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.hash, b.hash))
	})
	for len(batch) > 0 {
		group := batch
		for i, e := range batch {
			if e.score != batch[0].score {
				group = batch[:i]
				break
			}
		}
		s.visitGroup(group, visit)
		batch = batch[len(group):]
	}
	return next
}

// batch takes entries from the index: count of them, and more while there are
// few for the number of members that have the same scores as they.
func (s *Set) batch(cursor uint64, count int) (batch []indexed, next uint64) {
	scores, members := map[float64]bool{}, 0
	for next = cursor; ; {
		next = s.index.Scan(next, count-len(batch), func(e indexed) {
			batch = append(batch, e)
			if !scores[e.score] {
				scores[e.score] = true
				lo, hi := s.ScoreSpan(ScoreRange{Min: e.score, Max: e.score})
				members += hi - lo
			}
		})
		count = max(count, members/scanPasses)
		if next == 0 || len(batch) >= count {
			return batch, next
		}
	}
}

// visitGroup visits the members that stand in the index as one of the group,
// entries of one score in the order of their hashes.
func (s *Set) visitGroup(group []indexed, visit func([]byte, float64)) {
	score := group[0].score
	s.seq.ascend(s.seq.find(&cut{side: belowScore, score: score}), func(member []byte, found float64) bool {
		if found != score {
			return false
		}
		_, in := slices.BinarySearchFunc(group, s.hash.Sum(member), func(e indexed, hash uint64) int {
			return cmp.Compare(e.hash, hash)
		})
		if in {
			visit(member, found)
		}
		return true
	})
}
