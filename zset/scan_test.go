package zset

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func scanAll(t *testing.T, s *Set, count int, between func()) map[string]int {
	seen := map[string]int{}
	for cursor, first := uint64(0), true; first || cursor != 0; first = false {
		cursor = s.Scan(cursor, count, func(member []byte, score float64) {
			if found, ok := s.Score(member); !ok || found != score {
				t.Errorf("%s: visited with %v, has %v", member, score, found)
			}
			seen[string(member)]++
		})
		require.Less(t, cursor, uint64(1)<<53)
		between()
	}
	return seen
}

// Members that exist throughout are visited, although their scores change and many other members
// are added and removed.
func TestScanVisitsEachEntryOnceDuringChanges(t *testing.T) {
	const stay, pass = 200, 4000
	forms := []string{"%d", "%d-1", "x%d", "0%d", "%d0:x"}
	member := func(i uint64) []byte { return fmt.Appendf(nil, forms[i%5], i) }
	r := seeded(t)
	score := func(member []byte) float64 {
		switch n, ok := named(member); r.IntN(3) {
		case 0:
			return float64(r.IntN(20))
		case 1:
			return r.Float64()*5000 - 100
		default:
			if ok {
				return float64(n)
			}
			return 0
		}
	}
	for range 20 {
		s := New(&hasher)
		for i := range uint64(stay) {
			s.Add(member(i), score(member(i)))
		}
		change := func() {
			for range r.IntN(300) {
				if m := member(stay + r.Uint64N(pass)); r.IntN(2) == 0 {
					s.Add(m, score(m))
				} else {
					s.Remove(m)
				}
			}
			for range r.IntN(100) {
				m := member(r.Uint64N(stay))
				s.Add(m, score(m))
			}
			if r.IntN(4) == 0 {
				removeFrom(s, r, stay, pass, member)
			}
		}
		change()
		seen := scanAll(t, s, 5+r.IntN(60), change)
		require.NoError(t, s.Check())
		for i := range uint64(stay) {
			require.NotZero(t, seen[string(member(i))], "%s", member(i))
		}
	}
}

func removeFrom(s *Set, r *rand.Rand, stay, pass uint64, member func(uint64) []byte) {
	for i := stay + r.Uint64N(pass); i < stay+pass; i++ {
		s.Remove(member(i))
	}
}

// If nothing changes, each element is visited once, in a clone too.
func TestScanVisitsEachElementOnce(t *testing.T) {
	for name, s := range map[string]*Set{
		"empty": New(&hasher),
		"one":   of("a", 1),
		"names": filled(1000, func(i int) (string, float64) {
			return fmt.Sprintf("%d-%d", i/3, i%3),
				float64(i / 3)
		}),
		"tie":     filled(1000, func(i int) (string, float64) { return fmt.Sprintf("m%d", i), 3 }),
		"ties":    filled(1000, func(i int) (string, float64) { return fmt.Sprintf("m%d", i), float64(i % 10) }),
		"others":  filled(1000, func(i int) (string, float64) { return fmt.Sprintf("m%d", i), float64(i) + 0.5 }),
		"mixture": filled(1000, func(i int) (string, float64) { return fmt.Sprintf("%d-", i), float64(i + i%2) }),
		"digits":  filled(1000, func(i int) (string, float64) { return fmt.Sprintf("%d", i), float64(i % 10) }),
		"minus":   filled(1000, func(i int) (string, float64) { return fmt.Sprintf("-%d", i), float64(-i) }),
		"great": filled(1000, func(i int) (string, float64) {
			return fmt.Sprintf("%d", 1<<52-i),
				float64(1<<52 - i)
		}),
	} {
		for _, s := range []*Set{s, s.Clone()} {
			seen := scanAll(t, s, 7, func() {})
			assert.Len(t, seen, s.Len(), name)
			for member, n := range seen {
				require.Equal(t, 1, n, "%s %s", name, member)
			}
		}
	}
}

func filled(n int, element func(int) (string, float64)) *Set {
	s := New(&hasher)
	for i := range n {
		member, score := element(i)
		s.Add([]byte(member), score)
	}
	return s
}

func TestScanVisitsSmallSetsInOrder(t *testing.T) {
	s := filled(scanWhole, func(i int) (string, float64) { return fmt.Sprintf("m%03d", i), float64(-i) })
	n := 0
	next := s.Scan(99, 1, func(_ []byte, score float64) {
		assert.EqualValues(t, n-scanWhole+1, score)
		n++
	})
	assert.Zero(t, next)
	assert.Equal(t, scanWhole, n)
}

// If very many members have the same score, one call visits more of them.
func TestScanVisitsMoreOfManyEqualScores(t *testing.T) {
	const n = 20_000
	s := filled(n, func(i int) (string, float64) { return fmt.Sprintf("m%d", i), 1 })
	visited := 0
	next := s.Scan(0, 1, func([]byte, float64) { visited++ })
	assert.NotZero(t, next)
	assert.InDelta(t, n/scanWalk, visited, 32)
}

// A call visits about count elements, and a scan takes the corresponding number of calls.
func TestScanVisitsAboutCountElements(t *testing.T) {
	log := filled(5000, func(i int) (string, float64) { return fmt.Sprint(i), float64(i) })
	others := filled(5000, func(i int) (string, float64) { return fmt.Sprintf("m%d", i), float64(i) })
	tie := filled(5000, func(i int) (string, float64) { return fmt.Sprintf("m%d", i), 1 })
	for _, tt := range []struct {
		name       string
		set        *Set
		count      int
		calls, gap int // at most
	}{
		{"log", log, 10, 501, 10},
		{"others", others, 10, 501, 10 + 32},
		{"tie", tie, 10, 501, 10 + 32},
		{"tie", tie, 1000, 6, 1000 + 32},
	} {
		calls, cursor := 0, uint64(0)
		for first := true; first || cursor != 0; first = false {
			n := 0
			cursor = tt.set.Scan(cursor, tt.count, func([]byte, float64) { n++ })
			if n > tt.gap {
				t.Errorf("%s: visited %d at once", tt.name, n)
			}
			calls++
		}
		assert.LessOrEqual(t, calls, tt.calls, tt.name)
	}
}

func TestScanOfInvalidCursorVisitsNothing(t *testing.T) {
	none := func([]byte, float64) { t.Error("visited an element") }
	for _, s := range []*Set{
		filled(1000, func(i int) (string, float64) { return fmt.Sprint(i), float64(i) }),
		filled(1000, func(i int) (string, float64) { return fmt.Sprint(i), 3 }),
	} {
		assert.Zero(t, s.Scan(1<<53, 10, none))
		assert.Zero(t, s.Scan(^uint64(0), 10, none))
	}
}
