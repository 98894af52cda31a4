package zset

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var inf = math.Inf(1)

// The expected results are those of ZUNION and ZINTER in Redis 7.0.
func TestUnionAndIntersectMatchRedis(t *testing.T) {
	a, b := of("x", 1, "y", 2, "z", 3), of("y", 20, "z", -30, "w", 5, "v", 6)
	up, down := of("i", inf, "n", 1), of("i", math.Inf(-1), "n", 0, "m", 1)
	for _, tt := range []struct {
		name             string
		in               []Weighted
		agg              Aggregate
		union, intersect string
	}{
		{"sum", []Weighted{{a, 1}, {b, 1}}, Sum, "z=-27 x=1 w=5 v=6 y=22", "z=-27 y=22"},
		{"weights", []Weighted{{a, 2}, {b, -1}}, Sum, "y=-16 v=-6 w=-5 x=2 z=36", "y=-16 z=36"},
		{"min", []Weighted{{a, 1}, {b, 1}}, Min, "z=-30 x=1 y=2 w=5 v=6", "z=-30 y=2"},
		{"max", []Weighted{{a, 1}, {b, 1}}, Max, "x=1 z=3 w=5 v=6 y=20", "z=3 y=20"},
		{"twice", []Weighted{{a, 1}, {a, 2}}, Sum, "x=3 y=6 z=9", "x=3 y=6 z=9"},
		{"missing", []Weighted{{a, 1}, {nil, 1}}, Sum, "x=1 y=2 z=3", ""},
		{"empty", []Weighted{{a, 1}, {New(&hasher), 1}}, Sum, "x=1 y=2 z=3", ""},
		{"only missing", []Weighted{{nil, 1}}, Sum, "", ""},
		{"none", nil, Sum, "", ""},
		{"opposite infinities", []Weighted{{up, 1}, {down, 1}}, Sum, "i=0 m=1 n=1", "i=0 n=1"},
		{"infinity by 0", []Weighted{{up, 0}, {down, 1}}, Sum, "i=-Inf n=0 m=1", "i=-Inf n=0"},
		{"0 by infinity", []Weighted{{up, 1}, {down, inf}}, Sum, "i=0 n=1 m=+Inf", "i=0 n=0"},
		{"0 by infinity, max", []Weighted{{up, -1}, {down, inf}}, Max, "i=-Inf n=0 m=+Inf", "i=-Inf n=-1"},
	} {
		for i, s := range []*Set{Union(&hasher, tt.in, tt.agg), Intersect(&hasher, tt.in, tt.agg)} {
			assert.Equal(t, []string{tt.union, tt.intersect}[i], show(s), "%s %d", tt.name, i)
			assert.NoError(t, s.Check())
		}
	}
}

func TestDiffReturnsMembersOfTheFirstSetAlone(t *testing.T) {
	a, b := of("x", 1, "y", 2, "z", 3, "4", 4), of("y", 20, "w", 5)
	for _, tt := range []struct {
		in   []*Set
		want string
	}{
		{[]*Set{a}, "x=1 y=2 z=3 4=4"},
		{[]*Set{a, b}, "x=1 z=3 4=4"},
		{[]*Set{b, a}, "w=5"},
		{[]*Set{a, a}, ""},
		{[]*Set{a, nil, New(&hasher)}, "x=1 y=2 z=3 4=4"},
		{[]*Set{nil, a}, ""},
		{nil, ""},
	} {
		s := Diff(&hasher, tt.in)
		assert.Equal(t, tt.want, show(s))
		assert.NoError(t, s.Check())
	}
}

func TestIntersectCountStopsAtLimit(t *testing.T) {
	a, b := of("x", 1, "y", 2, "z", 3), of("y", 20, "z", -30, "w", 5, "v", 6)
	for _, tt := range []struct {
		in          []*Set
		limit, want int
	}{
		{[]*Set{a, b}, 0, 2}, {[]*Set{b, a}, 0, 2}, {[]*Set{a, b}, 1, 1}, {[]*Set{a, b}, 2, 2}, {[]*Set{a, b}, 9, 2},
		{[]*Set{a}, 0, 3}, {[]*Set{a, a}, 0, 3}, {[]*Set{a, nil}, 0, 0}, {[]*Set{a, New(&hasher)}, 0, 0}, {nil, 0, 0},
	} {
		assert.Equal(t, tt.want, IntersectCount(&hasher, tt.in, tt.limit))
	}
}

// Large results have many runs, and the operands do not change.
func TestAlgebraOfLargeSetsKeepsOperands(t *testing.T) {
	even := filled(4000, func(i int) (string, float64) { return fmt.Sprint(2 * i), float64(2 * i) })
	third := filled(4000, func(i int) (string, float64) { return fmt.Sprint(3 * i), float64(-i) })
	before := show(even) + show(third)
	union := Union(&hasher, []Weighted{{even, 1}, {third, 1}}, Sum)
	both := Intersect(&hasher, []Weighted{{even, 1}, {third, 1}}, Max)
	diff := Diff(&hasher, []*Set{even, third})
	n := IntersectCount(&hasher, []*Set{even, third}, 0)
	assert.Equal(t, 8000-n, union.Len())
	assert.Equal(t, n, both.Len())
	assert.Equal(t, 4000-n, diff.Len())
	assert.Equal(t, 1334, n)
	for _, s := range []*Set{union, both, diff} {
		require.NoError(t, s.Check())
	}
	union.Add([]byte("6"), -1)
	assert.Equal(t, before, show(even)+show(third))
}
