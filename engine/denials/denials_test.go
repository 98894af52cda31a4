package denials

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// For random denials, counters are sorted, their counts add up, and a count is at most
// N/MaxCounters too low and never too high.
func TestCountersKeepTheirBounds(t *testing.T) {
	for _, skew := range []float64{1.05, 1.3, 2, 4} {
		seed := rand.Uint64()
		t.Log("seed", seed)
		key := rand.NewZipf(rand.New(rand.NewPCG(seed, 0)), skew, 1, 10_000)
		var d Counters
		exact := make(map[string]int64)
		const all = 20_000
		for range all {
			hash := key.Uint64()
			name := fmt.Sprint(hash)
			d.Add(0, hash, []byte(name), nil)
			exact[name]++
		}
		sum := int64(0)
		for i, c := range d.counters {
			require.True(t, i == 0 || c.count <= d.counters[i-1].count, "counter %d is out of order", i)
			sum += c.count
		}
		assert.EqualValues(t, all, sum)
		for _, c := range d.Append(nil, AllDatabases) {
			assert.LessOrEqual(t, c.Count, exact[string(c.Name)])
			assert.GreaterOrEqual(t, c.Count, exact[string(c.Name)]-all/MaxCounters)
		}
	}
}

func TestDenialsAreCountedByDatabase(t *testing.T) {
	var d Counters
	d.Add(0, 1, []byte("k"), nil)
	d.Add(1, 1, []byte("k"), nil)
	d.Add(1, 1, []byte("k"), nil)
	assert.Equal(t, []Count{{DB: 0, Name: []byte("k"), Count: 1}}, d.Append(nil, 0))
	assert.Equal(t, []Count{{DB: 1, Name: []byte("k"), Count: 2}}, Top(d.Append(nil, AllDatabases), 1))
	assert.Nil(t, d.Rule(0, 1))
}
