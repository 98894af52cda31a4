package sampling

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/engine/counts"
	"rlserver/engine/eviction"
	"rlserver/engine/object"
	"rlserver/engine/table"
	"rlserver/internal/dict"
)

// A look finds the keys of the lowest worth among those that it visits: one, or another for each
// Size keys visited; of expired ones the first alone.
func TestLookFindsTheLowestWorth(t *testing.T) {
	const now = 1_000_000
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		hasher := dict.NewHasher(seed, 3)
		keys := table.New(func(name string) uint64 { return hasher.Sum([]byte(name)) }, new(counts.Sum))
		deadlines := map[string]int64{}
		for i := range 1 + r.IntN(60) {
			name := fmt.Sprint(i)
			at := now + 1 + r.Int64N(1000)
			if r.IntN(50) == 0 {
				at = now - 1
			}
			deadlines[name] = at
			o := object.NewString([]byte(name))
			o.SetDeadline(at)
			keys.Insert(hasher.Sum([]byte(name)), o)
			keys.Mark(hasher.Sum([]byte(name)), at)
		}
		var visited []string
		s := Sample{Policy: eviction.VolatileTTL, Size: 1 + r.IntN(8), Keep: func(o object.Object) bool {
			visited = append(visited, o.Name())
			return false
		}}
		s.Look(new(Hand), now, 1, func(int) (*table.Table, int) { return keys, keys.Len() })
		found := s.Found()
		require.NotEmpty(t, found)
		if slices.ContainsFunc(visited, func(name string) bool { return deadlines[name] < now }) {
			require.Len(t, found, 1)
			require.True(t, found[0].Expired)
			require.Less(t, found[0].Object.Deadline(), int64(now))
			continue
		}
		require.Len(t, found, min(max(len(visited)/s.Size, 1), most, len(visited)))
		slices.SortFunc(visited, func(a, b string) int { return int(deadlines[a] - deadlines[b]) })
		for i, f := range found {
			require.False(t, f.Expired)
			require.Equal(t, deadlines[visited[i]], f.Object.Deadline())
		}
	}
}

// A look that begins within a bucket, which has merged since, goes around and meets its keys again.
func TestLookFindsNoKeyTwice(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 3))
		hasher := dict.NewHasher(seed, 4)
		keys := table.New(func(name string) uint64 { return hasher.Sum([]byte(name)) }, new(counts.Sum))
		for i := range 1 + r.IntN(12) {
			name := fmt.Sprint(i)
			keys.Insert(hasher.Sum([]byte(name)), object.NewString([]byte(name)))
		}
		s := Sample{Policy: eviction.AllKeysLRU, Size: 1 + r.IntN(8), Keep: func(object.Object) bool { return false }}
		s.Look(&Hand{cursor: r.Uint64N(1 << 32)}, 1, 1, func(int) (*table.Table, int) { return keys, 0 })
		seen := map[object.Object]bool{}
		for _, f := range s.Found() {
			require.False(t, seen[f.Object], "%s is found twice, seed %d", f.Object.Name(), seed)
			seen[f.Object] = true
		}
	}
}
