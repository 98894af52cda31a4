package zset

import (
	"fmt"
	"iter"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func of(elements ...any) *Set {
	s := New(&hasher)
	for i := 0; i < len(elements); i += 2 {
		s.Add([]byte(elements[i].(string)), asFloat(elements[i+1]))
	}
	return s
}

func asFloat(x any) float64 {
	if n, ok := x.(int); ok {
		return float64(n)
	}
	return x.(float64)
}

func show(s *Set) string {
	var b strings.Builder
	for member, score := range s.Ascend(0, s.Len()) {
		fmt.Fprintf(&b, "%s=%v ", member, score)
	}
	return strings.TrimSpace(b.String())
}

func TestNamedParsesLeadingNumber(t *testing.T) {
	for _, tt := range []struct {
		member string
		n      uint64
		ok     bool
	}{
		{"0", 0, true}, {"7", 7, true}, {"17-2", 17, true}, {"17 ", 17, true}, {"0:x", 0, true}, {"1.5", 1, true},
		{"1700000000000-12", 1700000000000, true},
		{"4503599627370496", 1 << 52, true}, {"4503599627370497", 0, false}, {"9999999999999999", 0, false},
		{"10000000000000000", 0, false}, {"99999999999999999999999", 0, false},
		{"", 0, false}, {"x", 0, false}, {"-1", 0, false}, {"+1", 0, false}, {"01", 0, false}, {"00", 0, false},
		{"/", 0, false}, {":", 0, false},
	} {
		n, ok := named([]byte(tt.member))
		assert.Equal(t, tt.ok, ok, tt.member)
		if ok {
			assert.Equal(t, tt.n, n, tt.member)
		}
	}
}

func TestNegativeZeroIsKept(t *testing.T) {
	minus := math.Copysign(0, -1)
	s := of("0", minus)
	score, ok := s.Score([]byte("0"))
	assert.True(t, ok && math.Signbit(score), "-0 is kept")
	old, existed := s.Add([]byte("0"), 0)
	assert.True(t, existed && math.Signbit(old), "-0 equals 0, so nothing changes")
	score, _ = s.Score([]byte("0"))
	assert.True(t, math.Signbit(score))
	require.NoError(t, s.Check())
	s.Remove([]byte("0"))
	assert.Nil(t, s.rest)
}

func TestAddOfNaNPanics(t *testing.T) {
	assert.Panics(t, func() { of("a", math.NaN()) })
}

func TestAtOutOfRangePanics(t *testing.T) {
	assert.Panics(t, func() { of("a", 1).At(1) })
	assert.Panics(t, func() { of("a", 1).At(-1) })
}

// A client's log has no index and no scores if its members name their scores.
func TestLogsHaveNoIndex(t *testing.T) {
	s := New(&hasher)
	for i := range 5000 {
		s.Add(fmt.Appendf(nil, "%d-%d:", 1700000000000+i/3, i%3), float64(1700000000000+i/3))
		s.RemoveSpan(0, s.Len()-1000)
	}
	require.NoError(t, s.Check())
	assert.Nil(t, s.rest.index)
	for i := range s.rest.seq.one.runs {
		assert.Nil(t, s.rest.seq.one.runs[i].scores)
	}
	s.Add([]byte("1700000000000-0:"), 5)
	assert.Equal(t, 1, s.rest.index.Len(), "a member with another score is in the index")
	s.Add([]byte("1700000000000-0:"), 1700000000000)
	assert.Equal(t, 1, s.rest.index.Len(), "it stays in the index")
	require.NoError(t, s.Check())
	s.Remove([]byte("1700000000000-0:"))
	assert.Nil(t, s.rest.index)
}

// Sets of one run have no index, even if all members have the same tag. Reading changes no weight.
func TestSmallSetsHaveNoIndex(t *testing.T) {
	alike := make([][]byte, 0, maxMembers+1)
	for i := 0; len(alike) < cap(alike); i++ {
		if id := fmt.Appendf(nil, "lease:%012x", i); tagOf(id) == 7 {
			alike = append(alike, id)
		}
	}
	s := New(&hasher)
	for i, id := range alike[:maxMembers] {
		_, existed := s.Add(id, float64(1000-i%9))
		require.False(t, existed)
		require.NoError(t, s.Check())
		_, ok := s.Score(alike[i+1])
		require.False(t, ok)
	}
	assert.Nil(t, s.rest.index)
	s.AddHits(5, 0, maxMembers)
	weight := s.Weight()
	s.Scan(0, 1, func([]byte, float64) {})
	assert.Equal(t, maxMembers, s.rest.index.Len(), "a scan of a set that is not small needs the index")
	assert.Equal(t, weight, s.Weight())

	s = s.Clone()
	s.Add(alike[maxMembers], 0)
	assert.Equal(t, maxMembers+1, s.rest.index.Len(), "several runs need it too")
	for i, id := range alike {
		rank, _, ok := s.Rank(id)
		require.True(t, ok)
		member, _ := s.At(rank)
		require.Equal(t, alike[i], member)
		s.Remove(id)
		require.NoError(t, s.Check())
	}
	assert.Nil(t, s.rest)
}

func TestInOrderInsertsFillChapters(t *testing.T) {
	s := New(&hasher)
	const n = maxMembers*maxRuns + 1
	for i := range n {
		s.Add(fmt.Appendf(nil, "%d", i), float64(i))
	}
	assert.Equal(t, 2, s.rest.seq.tree.chapters.Len())
	assert.Equal(t, 1, s.rest.seq.last().n)
	require.NoError(t, s.Check())
}

func TestAppendToMemberChangesNothing(t *testing.T) {
	s := of("a", 1, "b", 2)
	member, _ := s.At(0)
	_ = append(member, 'x')
	assert.Equal(t, "a=1 b=2", show(s))
}

func TestAddCopiesTheMember(t *testing.T) {
	s, member := New(&hasher), []byte("a")
	s.Add(member, 1)
	member[0] = 'x'
	assert.Equal(t, "a=1", show(s))
}

func TestAscendAndDescendStopEarly(t *testing.T) {
	s := of("a", 1, "b", 2, "c", 3)
	got := ""
	for member := range s.Ascend(-5, 100) {
		if got += string(member); len(got) == 2 {
			break
		}
	}
	for member := range s.Descend(1, 3) {
		got += string(member)
	}
	for member := range s.Descend(0, 3) {
		got += string(member)
		break
	}
	assert.Equal(t, "abcbc", got)
	for range s.Ascend(2, 1) {
		t.Error("an empty span")
	}
	for range s.Descend(3, 9) {
		t.Error("an empty span")
	}
}

// The expected lexicographic ranges over different scores are those of Redis 7.0.
func TestLexSpanOfDifferentScoresMatchesRedis(t *testing.T) {
	s := of("a", 1, "b", 2, "c", 3)
	lo, hi := s.LexSpan(LexRange{LexBound{Member: []byte("b")}, LexBound{Infinite: 1}})
	assert.Equal(t, [2]int{1, 3}, [2]int{lo, hi})
	lo, hi = s.LexSpan(LexRange{LexBound{Infinite: 1}, LexBound{Infinite: -1}})
	assert.Equal(t, lo, hi)
}

// Clones are changed and read in other goroutines while the original changes, under the race
// detector, and each ends as if it were alone.
func TestClonesAreIndependent(t *testing.T) {
	for _, n := range []int{0, 1, 100, 2000, 20_000} {
		s := New(&hasher)
		for i := range n {
			s.Add(fmt.Appendf(nil, "%d-%d", i, i%2), float64(i+i%2))
		}
		before := show(s)
		snapshot, changed := s.Clone(), s.Clone()
		again := changed.Clone()
		var wait sync.WaitGroup
		change := func(s *Set, by int) {
			for i := 0; i < n; i += 7 {
				s.Remove(fmt.Appendf(nil, "%d-%d", i, i%2))
				s.Add(fmt.Appendf(nil, "%d-x", i+by), float64(i))
			}
			s.RemoveSpan(n/4, n/2)
			s.Add([]byte("end"), float64(by))
		}
		wait.Go(func() { change(changed, 1) })
		wait.Go(func() { assert.Equal(t, before, show(snapshot)) })
		wait.Go(func() {
			for i := range n {
				score, ok := again.Score(fmt.Appendf(nil, "%d-%d", i, i%2))
				if !ok || score != float64(i+i%2) {
					t.Errorf("%d-%d: %v %v", i, i%2, score, ok)
				}
			}
		})
		change(s, 2)
		wait.Wait()

		assert.Equal(t, before, show(snapshot))
		assert.Equal(t, before, show(again))
		for _, s := range []*Set{s, snapshot, changed, again} {
			require.NoError(t, s.Check())
		}
		score, _ := changed.Score([]byte("end"))
		assert.Equal(t, 1.0, score)
		score, _ = s.Score([]byte("end"))
		assert.Equal(t, 2.0, score)
		assert.Equal(t, s.Len(), changed.Len())
	}
}

// The operations of a limiter and of a reader do not allocate, in a small set and in one with a
// tree, and their arguments do not escape.
func TestHotPathsDoNotAllocate(t *testing.T) {
	for _, n := range []int{10, 1000, 3 * maxMembers * maxRuns} {
		s := filled(n, func(i int) (string, float64) { return fmt.Sprintf("%d:0", i+i%2), float64(i) })
		next, sum := n+n%2, 0.0
		assert.Zero(t, testing.AllocsPerRun(1000, func() {
			var buf [32]byte
			member := append(strconv.AppendInt(buf[:0], int64(next), 10), ":0"...)
			s.Add(member, float64(next))
			s.RemoveSpan(0, s.FirstAfter(float64(next-n-1)))
			next += 2

			rank, score, _ := s.Rank(member)
			again, _ := s.Score(member)
			_, at := s.At(rank)
			lo, hi := s.ScoreSpan(ScoreRange{Min: score - 5, Max: score})
			sum += again + at + float64(hi-lo)
			for _, score := range s.Ascend(lo, hi) {
				sum += score
			}
			for _, score := range s.Descend(lo, hi) {
				sum += score
			}
		}), "of %d", n)
		require.NoError(t, s.Check())
	}
}

// A limiter finds free names, whatever others have written, and takes any number in one step.
func TestFreeNamesOfHits(t *testing.T) {
	s := New(&hasher)
	const at = 1_700_000_000_000
	assert.EqualValues(t, 3, s.Free(at, 3, 10))
	s.AddHits(at, 0, 5)
	assert.EqualValues(t, 5, s.Free(at, 3, 10))
	assert.EqualValues(t, 3, s.Free(at+1, 3, 10))
	s.Add([]byte("1700000000000-12"), 7)
	assert.EqualValues(t, 13, s.Free(at, 3, 10))
	assert.EqualValues(t, 13, s.Free(at, 3, 1000), "the rest is searched rather than all names")
	s.AddHits(at, 11, 3)
	require.NoError(t, s.Check())
	score, _ := s.Score([]byte("1700000000000-12"))
	assert.EqualValues(t, at, score, "an existing member gets the score")
	assert.Equal(t, 5+3, s.Len())
	s.AddHits(at+1, 0, 1<<52)
	s.AddHits(-5, 1<<63, 2)
	require.NoError(t, s.Check())
	assert.Equal(t, 10+1<<52, s.Len())
	member, _ := s.At(0)
	assert.Equal(t, "-5-9223372036854775808", string(member))
	member, _ = s.At(s.Len() - 1)
	assert.Equal(t, "1700000000001-999999999999999", string(member))
	assert.Less(t, s.Weight(), 1000)
}

// Nor do those of a limiter on its own hits. Only members that are read are written out.
func TestHotPathsOfHitsDoNotAllocate(t *testing.T) {
	for _, n := range []int{10, 1000, 100_000} {
		for _, cost := range []uint64{1, 4000} {
			s := New(&hasher)
			now, sum := int64(1_700_000_000_000), 0.0
			hit := func() {
				now += 2
				s.AddHits(now, s.Free(now, 0, cost), cost)
				s.RemoveSpan(0, s.FirstAfter(float64(now-2*int64(n))))
			}
			for range n {
				hit()
			}
			assert.Zero(t, testing.AllocsPerRun(1000, func() {
				hit()
				var buf [32]byte
				member := append(strconv.AppendInt(buf[:0], now, 10), "-0"...)
				rank, score, ok := s.Rank(member)
				again, _ := s.Score(member)
				lo, hi := s.ScoreSpan(ScoreRange{Min: score - 5, Max: score})
				if !ok || rank != s.Len()-int(cost) || again != s.ScoreAt(rank) || hi-lo != 3*int(cost) {
					t.Fatal(rank, score, ok, again, lo, hi)
				}
				sum += again
			}), "of %d", n)
			require.NoError(t, s.Check())
		}
	}
}

// Check detects each violated invariant.
func TestCheckFindsFaults(t *testing.T) {
	for name, corrupt := range map[string]func(s *Set){
		"order in a run": func(s *Set) {
			r := &s.rest.seq.first().runs[0]
			r.starts[3], r.starts[4] = r.starts[4],
				r.starts[3]
		},
		"order of members":   func(s *Set) { copy(s.rest.seq.first().runs[0].member(5), "9") },
		"order of runs":      func(s *Set) { runs := s.rest.seq.first().runs; runs[0], runs[1] = runs[1], runs[0] },
		"first score":        func(s *Set) { s.rest.seq.first().runs[0].low-- },
		"last score":         func(s *Set) { s.rest.seq.first().runs[0].high++ },
		"lost score":         func(s *Set) { r := &s.rest.seq.last().runs[0]; r.scores = r.scores[1:] },
		"unnamed score":      func(s *Set) { s.rest.seq.last().runs[1].scores = nil },
		"empty run":          func(s *Set) { r := &s.rest.seq.first().runs[0]; r.head = len(r.starts) },
		"count of a chapter": func(s *Set) { s.rest.seq.first().n++ },
		"count of the tree":  func(s *Set) { s.rest.seq.tree.n++ },
		"empty chapter":      func(s *Set) { s.rest.seq.first().n = 0 },
		"crowded chapter": func(s *Set) {
			ch := s.rest.seq.first()
			ch.runs = append(ch.runs, ch.runs[:maxRuns]...)
		},
		"lone chapter":   func(s *Set) { s.rest.seq.tree = newTree() },
		"chapter beside": func(s *Set) { s.rest.seq.one.runs = make([]run, 1) },
		"missing entry": func(s *Set) {
			s.rest.index.Remove(hasher.Sum([]byte("x")),
				func(indexed) bool { return true })
		},
		"spare entry":      func(s *Set) { s.rest.addToIndex([]byte("y"), 7) },
		"index of a clone": func(s *Set) { s.rest.unindexed = true },
	} {
		s := filled(
			maxRuns*maxMembers+1,
			func(i int) (string, float64) { return fmt.Sprint(100000 + i), float64(100000 + i) },
		)
		s.Add([]byte("x"), 1e6)
		s.Add([]byte("100001"), 1e6)
		s.Add([]byte("100000"), 1e6)
		for i := range 2 * maxMembers {
			s.Add(fmt.Appendf(nil, "z%d", i), 1e7)
		}
		require.NoError(t, s.Check())
		corrupt(s)
		assert.Error(t, s.Check(), name)
	}
}

// Whoever ranges over a set may end with any element, also the last hit before another element.
func TestRangesEndAnywhere(t *testing.T) {
	s := New(&hasher)
	for _, at := range []int64{1000, 1001, 1004} {
		s.AddHits(at, 8, 4)
		s.Add(fmt.Append(nil, "other ", at), float64(at)+0.5)
	}
	n := s.Len()
	for lo := range n {
		for length := 1; lo+length <= n; length++ {
			for _, all := range []iter.Seq2[[]byte, float64]{s.Ascend(lo, n), s.Descend(0, n-lo)} {
				seen := 0
				for range all {
					if seen++; seen == length {
						break
					}
				}
				require.Equal(t, length, seen)
			}
		}
	}
}
