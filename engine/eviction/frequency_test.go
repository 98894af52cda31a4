package eviction

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFrequencyCountsLogarithmically(t *testing.T) {
	f, r := Frequency(FreshCount), rand.New(rand.NewPCG(1, 2))
	counts := map[int]uint8{}
	for i := 1; i <= 1_000_000; i++ {
		f = f.Use(0, r.Uint64())
		counts[i] = f.Count(0)
	}
	// The counts in Redis' documentation for its default factor of 10.
	for hits, want := range map[int]float64{100: 10, 1000: 18, 100_000: 142, 1_000_000: 255} {
		assert.InDelta(t, want, counts[hits], 15, "%d hits", hits)
	}
	assert.EqualValues(t, 255-3, f.Count(3*60_000), "it decreases by one each minute")
	assert.EqualValues(t, 0, f.Count(300*60_000))
	harder := uint64((252-FreshCount)*logFactor + 1)
	assert.EqualValues(t, 253, f.Use(3*60_000, harder).Count(3*60_000), "it increases from the decreased count")
	assert.EqualValues(t, 252, f.Use(3*60_000, harder+1).Count(3*60_000))
}
