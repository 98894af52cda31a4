package zset

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/internal/dict"
	"rlserver/zset/hitlog"
)

var hasher = dict.NewHasher(7, 11)

func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// model is the reference implementation of a Set: a sorted slice.
type model []element

func compare(a, b element) int {
	return cmp.Or(cmp.Compare(a.score, b.score), bytes.Compare(a.member, b.member))
}

func (m model) rank(member []byte) int {
	return slices.IndexFunc(m, func(e element) bool {
		n := min(len(e.member), len(member), 10) // a few bytes distinguish most members, and fast
		return string(e.member[:n]) == string(member[:n]) && bytes.Equal(e.member, member)
	})
}

func (m *model) add(member []byte, score float64) (old float64, existed bool) {
	if i := m.rank(member); i >= 0 {
		old = (*m)[i].score
		if old == score {
			return old, true
		}
		*m = slices.Delete(*m, i, i+1)
		existed = true
	}
	e := element{bytes.Clone(member), score}
	i, _ := slices.BinarySearchFunc(*m, e, compare)
	*m = slices.Insert(*m, i, e)
	return old, existed
}

// count returns for how many elements, from the first on, the test holds.
func (m model) count(test func(element) bool) int {
	i := slices.IndexFunc(m, func(e element) bool { return !test(e) })
	if i < 0 {
		return len(m)
	}
	return i
}

func (m model) scoreSpan(r ScoreRange) (lo, hi int) {
	lo = m.count(func(e element) bool { return e.score < r.Min || r.MinOpen && e.score == r.Min })
	hi = m.count(func(e element) bool { return e.score < r.Max || !r.MaxOpen && e.score == r.Max })
	return lo, max(lo, hi)
}

func (m model) lexSpan(r LexRange) (lo, hi int) {
	bound := func(b LexBound, equal bool) int {
		if b.Infinite != 0 {
			return map[bool]int{true: len(m), false: 0}[b.Infinite > 0]
		}
		return m.count(func(e element) bool {
			c := bytes.Compare(e.member, b.Member)
			return c < 0 || c == 0 && equal
		})
	}
	lo, hi = bound(r.Min, r.Min.Open), bound(r.Max, !r.Max.Open)
	return lo, max(lo, hi)
}

// equalBits compares floats; -0 and 0 differ.
func equalBits(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }

// requireSame compares all elements, both ways, and checks the invariants.
func requireSame(t *testing.T, m model, s *Set) {
	t.Helper()
	require.NoError(t, s.Check())
	require.Equal(t, len(m), s.Len())
	i := 0
	for member, score := range s.Ascend(0, s.Len()) {
		if !bytes.Equal(m[i].member, member) || !equalBits(m[i].score, score) {
			t.Fatalf("element %d is %.40q %v, should be %.40q %v", i, member, score, m[i].member, m[i].score)
		}
		i++
	}
	require.Equal(t, len(m), i)
	for member := range s.Descend(0, s.Len()) {
		i--
		if !bytes.Equal(m[i].member, member) {
			t.Fatalf("element %d is %.40q backward, should be %.40q", i, member, m[i].member)
		}
	}
	require.Zero(t, i)
}

// trace is a distribution of members and scores for random tests.
type trace struct {
	name    string
	member  func(*rand.Rand) string
	score   func(r *rand.Rand, member string) float64
	uniform bool // all scores are equal
	steps   int
	ids     []string // of calls that add members
}

var traces = []trace{
	{
		name:   "ties",
		member: func(r *rand.Rand) string { return fmt.Sprintf("m%d", r.IntN(400)) },
		score: func(r *rand.Rand, _ string) float64 {
			few := []float64{math.Inf(-1), -1.5, math.Copysign(0, -1), 0, 1, 2, math.Inf(1)}
			return few[r.IntN(len(few))]
		},
	}, {
		name:   "log",
		member: func(r *rand.Rand) string { return fmt.Sprintf("%d-%d", 1400000000000+r.IntN(150), r.IntN(12)) },
		score:  func(_ *rand.Rand, member string) float64 { n, _ := named([]byte(member)); return float64(n) },
	}, {
		name: "hits and others",
		member: func(r *rand.Rand) string {
			return fmt.Sprintf([]string{"%d-%d", "%d-%d", "%d-%d", "%d:%d", "x%d-%d", "%d-%d:", "%d-0%d"}[r.IntN(7)],
				1400000000000+r.IntN(20), r.IntN(130))
		},
		score: func(r *rand.Rand, member string) float64 {
			n, _ := named([]byte(strings.TrimPrefix(member, "x")))
			return float64(n) + []float64{0, 0, 0, 0, 0, 0, 0, 0, 0.5, 1}[r.IntN(10)]
		},
	}, {
		name: "calls and others",
		ids:  []string{"", "a", "a:", "a:1", "a:b", "b", "17", "1400000000003-1", "1400000000003-"},
		member: func(r *rand.Rand) string {
			return fmt.Sprintf([]string{"a:%d", "a:%d", "a%d:", "b:%d", "17:%d", ":%d", "1400000000003-%d"}[r.IntN(7)],
				r.IntN(30))
		},
		score: func(r *rand.Rand, member string) float64 {
			if n, ok := named([]byte(member)); ok && r.IntN(2) == 0 {
				return float64(n)
			}
			return float64(1400000000000 + r.IntN(10))
		},
	}, {
		name: "names and others",
		member: func(r *rand.Rand) string {
			return fmt.Sprintf([]string{"%d", "%d-x", "%d:", "x%d", "0%d", "-%d", "%d0"}[r.IntN(7)], r.IntN(40))
		},
		score: func(r *rand.Rand, member string) float64 {
			if n, ok := named([]byte(member)); ok && r.IntN(2) == 0 {
				return float64(n)
			}
			return float64(r.IntN(50)) / 2 * float64(1-2*r.IntN(2))
		},
	}, {
		name:    "lex",
		member:  func(r *rand.Rand) string { return strings.Repeat("ab", r.IntN(4)) + fmt.Sprint(r.IntN(90)) },
		score:   func(*rand.Rand, string) float64 { return 0 },
		uniform: true,
	}, {
		name:   "empty and short",
		member: func(r *rand.Rand) string { return strings.Repeat("0", r.IntN(3)) + strings.Repeat("a", r.IntN(3)) },
		score:  func(r *rand.Rand, _ string) float64 { return float64(r.IntN(3)) },
	}, {
		name: "long",
		member: func(r *rand.Rand) string {
			n := r.IntN(800)
			size := []int{10, 300, maxBytes / 5, sparseBytes - 10, sparseBytes, sparseBytes, sparseBytes, maxBytes,
				40000}[n%9]
			return fmt.Sprintf("%d:%s", n, strings.Repeat("~", size))
		},
		score: func(r *rand.Rand, member string) float64 {
			if n, _ := named([]byte(member)); r.IntN(10) > 0 {
				return float64(n)
			}
			return r.Float64() * 2000
		},
	},
}

func TestSetMatchesModel(t *testing.T) {
	for _, tr := range traces {
		t.Run(tr.name, func(t *testing.T) {
			againstModel(t, seeded(t), tr)
		})
	}
}

func againstModel(t *testing.T, r *rand.Rand, tr trace) {
	s, m := New(&hasher), model(nil)
	var old *Set // a clone, which must not change
	var oldModel model
	for step := range cmp.Or(tr.steps, 2000) {
		member := []byte(tr.member(r))
		score := tr.score(r, string(member))
		i := m.rank(member)
		removals := []int{20, 60}[step/250%2]
		switch op := r.IntN(100); {
		case op < removals:
			found, existed := s.Remove(member)
			require.Equal(t, i >= 0, existed)
			if existed {
				require.True(t, equalBits(m[i].score, found))
				m = slices.Delete(m, i, i+1)
			}
		case op < removals+3:
			lo := r.IntN(len(m)+3) - 1
			hi := lo + r.IntN(20) - 2
			from := min(max(lo, 0), len(m))
			to := max(from, min(hi, len(m)))
			require.Equal(t, to-from, s.RemoveSpan(lo, hi))
			m = slices.Delete(m, from, to)
		case op == 99:
			old, oldModel = s.Clone(), slices.Clone(m)
			if r.IntN(2) == 0 { // continue with the clone, and keep the original
				s, old = old, s
			}
		case op >= 90 && tr.ids != nil:
			m.addCall(t, r, s, []byte(tr.ids[r.IntN(len(tr.ids))]))
		default:
			was, existed := s.Add(member, score)
			modelWas, modelExisted := m.add(member, score)
			require.Equal(t, modelExisted, existed)
			require.True(t, equalBits(modelWas, was))
		}
		requireAnswers(t, r, tr, m, s)
		if step%50 == 0 {
			requireSame(t, m, s)
		}
		if old != nil && step%200 == 0 {
			requireSame(t, oldModel, old)
		}
	}
	requireSame(t, m, s)
	require.Equal(t, len(m), s.RemoveSpan(0, s.Len()))
	requireSame(t, nil, s)
}

// addCall adds the members of a call with an id to the set and the model, under free names.
func (m *model) addCall(t *testing.T, r *rand.Rand, s *Set, id []byte) {
	t.Helper()
	at, n := int64(1400000000000+r.IntN(10)), uint64(1+r.IntN(3)/2*r.IntN(40))
	next := uint64(1)
	for _, free := range s.FreeNumbers(id, n) {
		for ; next < free[0]; next++ {
			require.GreaterOrEqual(t, m.rank(hitlog.AppendName(nil, id, next)), 0, "%q %d is free", id, next)
		}
		for ; next < free[1]; next++ {
			_, existed := m.add(hitlog.AppendName(nil, id, next), float64(at))
			require.False(t, existed, "%q %d is taken", id, next)
			n--
		}
		s.AddCall(at, id, free[0], free[1]-free[0])
	}
	require.Zero(t, n)
}

// requireAnswers compares the results for a random member, rank and range.
func requireAnswers(t *testing.T, r *rand.Rand, tr trace, m model, s *Set) {
	t.Helper()
	require.Equal(t, len(m), s.Len())

	member := []byte(tr.member(r))
	rank, score, ok := s.Rank(member)
	again, too := s.Score(member)
	i := m.rank(member)
	require.Equal(t, i >= 0, ok)
	require.Equal(t, ok, too)
	if ok {
		require.Equal(t, i, rank)
		require.True(t, equalBits(m[i].score, score) && equalBits(score, again))
	}

	if len(m) > 0 {
		i := r.IntN(len(m))
		member, score := s.At(i)
		require.True(t, bytes.Equal(m[i].member, member) && equalBits(m[i].score, score), "rank %d", i)
	}

	x, y := tr.score(r, tr.member(r)), tr.score(r, tr.member(r))
	scores := ScoreRange{x, y, r.IntN(2) == 0, r.IntN(2) == 0}
	lo, hi := s.ScoreSpan(scores)
	modelLo, modelHi := m.scoreSpan(scores)
	require.Equal(t, [2]int{modelLo, modelHi}, [2]int{lo, hi}, "%v", scores)
	require.Equal(t, m.count(func(e element) bool { return e.score <= x }), s.FirstAfter(x))

	if tr.uniform {
		lex := LexRange{lexBound(r, tr), lexBound(r, tr)}
		lo, hi = s.LexSpan(lex)
		modelLo, modelHi = m.lexSpan(lex)
		require.Equal(t, [2]int{modelLo, modelHi}, [2]int{lo, hi}, "%v", lex)
	}
}

func lexBound(r *rand.Rand, tr trace) LexBound {
	infinite := []int8{-1, 1, 0, 0, 0, 0}[r.IntN(6)]
	return LexBound{Member: []byte(tr.member(r)), Open: r.IntN(2) == 0, Infinite: infinite}
}

// Sets of many chapters grow at the end, at the front and at random places, and shrink at the
// front, the back and in the middle.
func TestSetOfManyChaptersMatchesModel(t *testing.T) {
	const n = 3*maxRuns*maxMembers + 1
	grow := map[string]func(r *rand.Rand, i int) (string, float64){
		"log": func(_ *rand.Rand, i int) (string, float64) {
			return fmt.Sprintf("%d-0", 1000000+i), float64(1000000 + i)
		},
		"names": func(_ *rand.Rand, i int) (string, float64) {
			return fmt.Sprintf("%d:0", 1000000+i), float64(1000000 + i)
		},
		"hits and others": func(_ *rand.Rand, i int) (string, float64) {
			return fmt.Sprintf([]string{"%d-0", "%d:0"}[i%5/3], 1000000+i), float64(1000000 + i/2*2)
		},
		"random": func(r *rand.Rand, i int) (string, float64) { return fmt.Sprintf("m%d", i), r.Float64() },
		"falls": func(_ *rand.Rand, i int) (string, float64) {
			return fmt.Sprintf("%d-0", 2000000-i), float64(2000000 - i)
		},
		"one tie": func(_ *rand.Rand, i int) (string, float64) { return fmt.Sprintf("m%d", i), 1 },
	}
	for name, next := range grow {
		t.Run(name, func(t *testing.T) {
			r := seeded(t)
			s, m := New(&hasher), make(model, n)
			for i := range n {
				member, score := next(r, i)
				m[i] = element{[]byte(member), score}
				s.Add(m[i].member, score)
			}
			slices.SortFunc(m, compare)
			requireSame(t, m, s)
			clone, whole := s.Clone(), slices.Clone(m)
			for len(m) > 0 {
				lo := [3]int{0, r.IntN(len(m)), max(0, len(m)-4000)}[r.IntN(3)]
				hi := min(len(m), lo+r.IntN(4000))
				for _, e := range m[lo:min(hi, lo+100)] {
					rank, score, ok := s.Rank(e.member)
					removed, existed := s.Remove(e.member)
					if !ok || !existed || rank != lo || score != e.score || removed != e.score {
						t.Fatalf("%s: rank %d %v %t, removed %v %t", e.member, rank, score, ok, removed, existed)
					}
				}
				rest := max(0, hi-lo-100)
				require.Equal(t, rest, s.RemoveSpan(lo, lo+rest))
				m = slices.Delete(m, lo, hi)
				if s.rest != nil {
					require.NoError(t, s.rest.seq.check())
				}
				if r.IntN(8) == 0 {
					requireSame(t, m, s)
				}
			}
			requireSame(t, whole, clone)
		})
	}
}
