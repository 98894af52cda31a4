package engine

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestMemoryUsageIsNearWhatTheHeapSays fills engines with keys of one kind and compares the estimates with what the heap has grown by.
func TestMemoryUsageIsNearWhatTheHeapSays(t *testing.T) {
	element := func(i, length int) []byte { return fmt.Appendf(nil, "%*d", length, i) }
	for _, test := range []struct {
		name           string
		keys, elements int
		kind           EffectKind
		length         int
	}{
		{"short strings", 2000, 1, EffectString, 10},
		{"long strings", 1000, 1, EffectString, 1000},
		{"small hashes", 1000, 10, EffectHashSet, 10},
		{"hashes of a hundred", 200, 100, EffectHashSet, 10},
		{"large hashes", 20, 5000, EffectHashSet, 10},
		{"small sorted sets", 1000, 10, EffectAdd, 10},
		{"sorted sets of two hundred", 200, 200, EffectAdd, 10},
		{"large sorted sets", 20, 5000, EffectAdd, 50},
	} {
		e := New(Options{})
		tx := e.NewTx()
		keys := make([]Key, test.keys)
		for i := range keys {
			keys[i] = e.Key(fmt.Appendf(nil, "key:%d", i))
		}
		before := heapSize()
		for i := range keys {
			tx.Begin(1, 0, keys[i:i+1], true)
			var o object
			for j := range test.elements {
				b := element(j, test.length)
				o = tx.apply(o, &Effect{Kind: test.kind, Key: keys[i], Field: b, Value: b, Score: float64(j)})
			}
			tx.End()
		}
		grown := heapSize() - before
		for _, samples := range []int{0, 5} {
			var estimate int64
			for i := range keys {
				tx.Begin(1, 0, keys[i:i+1], false)
				bytes, ok := tx.MemoryUsage(keys[i], samples)
				tx.End()
				assert.True(t, ok)
				estimate += bytes
			}
			assert.InEpsilon(t, grown, estimate, 0.4, "%s, %d samples", test.name, samples)
		}
		runtime.KeepAlive(e)
	}
	t.Run("a buffer with room to spare counts whole", func(t *testing.T) {
		s := &stringObject{value: []byte(strings.Repeat("x", 100))[:1]}
		assert.Greater(t, weigh(s, 0), int64(100))
	})
}

func heapSize() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
