package object

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/dict"
)

func pairsOf(fields iter.Seq2[string, string]) (pairs []pair) {
	for field, value := range fields {
		pairs = append(pairs, pair{field, value})
	}
	return pairs
}

// sizedHash returns a hash of n numbered fields with numbered values.
func sizedHash(n int) *Fields {
	hasher := dict.NewHasher(3, 4)
	h := newFields(&hasher)
	for i := range n {
		h.Set(fmt.Appendf(nil, "%d", i), fmt.Appendf(nil, "value %d", i))
	}
	return &h
}

func TestHashCloneIsIndependent(t *testing.T) {
	for _, n := range []int{0, 3, SmallHash, SmallHash + 1} {
		h := sizedHash(n)
		before := maps.Collect(h.All())
		c := h.Clone()
		require.Equal(t, before, maps.Collect(c.All()), n)

		c.Set([]byte("0"), []byte("of the clone"))
		c.Set([]byte("more"), []byte("of the clone"))
		c.Remove([]byte("1"))
		require.Equal(t, before, maps.Collect(h.All()), n)

		after := maps.Collect(c.All())
		h.Set([]byte("2"), []byte("of the original"))
		h.Remove([]byte("0"))
		require.Equal(t, after, maps.Collect(c.All()), n)
	}
}

// A scan returns every field that exists throughout, whatever is added and removed meanwhile,
// and none that never existed.
func TestHashScanDuringChanges(t *testing.T) {
	for _, n := range []int{0, 3, SmallHash, 5000} {
		h := sizedHash(n)
		seen := make(map[string]string)
		for cursor, calls := uint64(0), 0; calls == 0 || cursor != 0; calls++ {
			cursor = HashView{h}.Scan(cursor, 10, func(field, value string) { seen[field] = value })
			h.Set(fmt.Appendf(nil, "passing %d", calls), nil)
			h.Remove(fmt.Appendf(nil, "passing %d", calls-1))
		}
		for i := range n {
			require.Equal(t, fmt.Sprint("value ", i), seen[fmt.Sprint(i)], "%d of %d", i, n)
			delete(seen, fmt.Sprint(i))
		}
		for field := range seen {
			require.Contains(t, field, "passing")
		}
	}
	require.Zero(t, HashView{}.Scan(0, 10, func(string, string) { t.Error("a missing key has a field") }))
}

func TestHashSample(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 10, SmallHash, 3000} {
		h := sizedHash(n)
		for _, wanted := range []int64{0, 1, 2, int64(n) / 5, int64(n) / 2, int64(n) - 1, int64(n), int64(n) + 1,
			1 << 62} {
			sample := pairsOf(HashView{h}.Sample(rnd, wanted))
			require.Len(t, sample, int(min(wanted, int64(n))), "%d of %d", wanted, n)
			require.Len(
				t,
				maps.Collect(HashView{h}.Sample(rnd, wanted)),
				len(sample),
				"%d of %d: a field twice",
				wanted,
				n,
			)
			for _, p := range sample {
				require.Equal(t, "value "+p.field, p.value)
			}
		}
		for range (HashView{h}).Sample(rnd, int64(n)/5+1) { // the caller may stop
			break
		}
		require.Len(t, pairsOf(HashView{h}.Pick(rnd, 3*n)), 3*n)
	}
	assert.Empty(t, pairsOf(HashView{}.Sample(rnd, 3)))
	assert.Empty(t, pairsOf(HashView{}.Pick(rnd, 3)))
	_, _, ok := HashView{}.Random(rnd)
	assert.False(t, ok)
}

// Each field is sampled about as often as any other, with each way of sampling. The random
// source is fixed, and so is the result.
func TestHashSampleIsFair(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct{ fields, wanted, samples int }{
		{10, 3, 4000},                         // small
		{SmallHash + 88, 20, 4000},            // random picks, repeated ones dropped
		{SmallHash + 88, SmallHash - 12, 300}, // one pass through all
	} {
		h := sizedHash(c.fields)
		drawn := make(map[string]int)
		for range c.samples {
			for field := range (HashView{h}).Sample(rnd, int64(c.wanted)) {
				drawn[field]++
			}
		}
		chance := float64(c.wanted) / float64(c.fields)
		mean, variance := float64(c.samples)*chance, float64(c.samples)*chance*(1-chance)
		chiSquare := 0.0
		for i := range c.fields {
			off := float64(drawn[fmt.Sprint(i)]) - mean
			chiSquare += off * off / variance
		}
		// A chi-square value is about the number of its terms n, with a standard deviation of
		// √(2n).
		assert.InDelta(t, c.fields, chiSquare, 4*math.Sqrt(2*float64(c.fields)), "%+v", c)
	}
}

func BenchmarkHash(b *testing.B) {
	for _, n := range []int{4, 64, SmallHash, 100_000} {
		h := sizedHash(n)
		field := fmt.Appendf(nil, "%d", n/2)
		b.Run(fmt.Sprint("find/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.Find(field)
			}
		})
		b.Run(fmt.Sprint("set/", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.Set(field, field)
			}
		})
	}
}

// A hash that is only read does not keep iterations that have ended.
func TestHashDropsEndedWalks(t *testing.T) {
	h := sizedHash(2 * SmallHash)
	for range 100 {
		require.Len(t, pairsOf(HashView{h}.Keep()), 2*SmallHash)
	}
	require.LessOrEqual(t, len(h.Many.Frozen), 1)
}
