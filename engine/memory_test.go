package engine

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/object"
)

// TestMemoryUsageMatchesHeap fills engines with keys of one kind and compares the
// estimate with the growth of the heap.
func TestMemoryUsageMatchesHeap(t *testing.T) {
	element := func(i, length int) []byte { return fmt.Appendf(nil, "%*d", length, i) }
	for _, test := range []struct {
		name           string
		keys, elements int
		kind           effect.Kind
		length         int
	}{
		{"short strings", 2000, 1, effect.String, 10},
		{"long strings", 1000, 1, effect.String, 1000},
		{"small hashes", 1000, 10, effect.HashSet, 10},
		{"hashes of a hundred", 200, 100, effect.HashSet, 10},
		{"large hashes", 20, 5000, effect.HashSet, 10},
		{"small sorted sets", 1000, 10, effect.Add, 10},
		{"sorted sets of two hundred", 200, 200, effect.Add, 10},
		{"small lists", 1000, 10, effect.Insert, 10},
		{"large lists", 20, 5000, effect.Insert, 20},
		{"lists of long elements", 100, 10, effect.Insert, 5000},
		{"large sorted sets", 20, 5000, effect.Add, 50},
		{"logs of one hit", 5000, 1, effect.AddHits, 0},
		{"logs of ten hits", 2000, 10, effect.AddHits, 0},
		{"logs of a thousand hits", 100, 1000, effect.AddHits, 0},
		{"token buckets", 10000, 1, effect.Bucket, 0},
		{"fixed windows", 10000, 1, effect.Window, 0},
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
			var o object.Object
			for j := range test.elements {
				b := element(j, test.length)
				if test.kind == effect.Insert {
					o = tx.Insert(keys[i], object.TypeList, j, b)
					continue
				}
				o = tx.apply(o, &effect.Effect{Kind: test.kind, Key: keys[i], Field: b, Value: b, Score: float64(j),
					Hits: effect.Hits{At: epoch + int64(j), N: 1}})
			}
			tx.End()
		}
		grown := heapSize() - before
		assert.InEpsilon(
			t,
			grown,
			e.Weight(),
			0.3,
			"%s: %d bytes a key, estimated %d",
			test.name,
			grown/int64(test.keys),
			e.Weight()/int64(test.keys),
		)
		runtime.KeepAlive(e)
		runtime.KeepAlive(keys)
	}
	t.Run("the whole capacity of a buffer counts", func(t *testing.T) {
		s := &object.String{Value: []byte(strings.Repeat("x", 100))[:1]}
		assert.Greater(t, object.Weigh(s), int64(100))
	})
}

func heapSize() int64 {
	runtime.GC()
	runtime.GC() // what earlier tests have left in pools is freed by the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Readers see the weight of a long call while it runs, and all numbers exactly when it has ended or
// the engine is discarded.
func TestWeightOfACallThatRuns(t *testing.T) {
	e := New(Options{Shards: 2})
	tx, weight, counted := e.NewTx(), int64(0), func() (n int64) {
		for _, c := range e.Types() {
			n += c.Keys
		}
		return n
	}
	tx.BeginAll(1, 0, true)
	for i := range 1000 {
		k := e.Key(fmt.Append(nil, i))
		tx.Set(k, make([]byte, i%100), SetMode{})
		usage, _ := tx.MemoryUsage(k)
		weight += usage
		require.InDelta(t, weight, e.Weight(), 2*reportGrain)
	}
	assert.Zero(t, counted())
	tx.End()
	assert.Equal(t, weight, e.Weight())
	assert.EqualValues(t, 1000, counted())
	keys, _ := e.Size(0)
	assert.Equal(t, 1000, keys)

	k := e.Key([]byte("few"))
	tx.Begin(1, 0, []Key{k}, true)
	tx.Set(k, nil, SetMode{})
	usage, _ := tx.MemoryUsage(k)
	tx.End()
	assert.Equal(t, weight+usage, e.Weight())

	e.Discard()
	assert.Zero(t, e.Weight())
	assert.Zero(t, e.Memory().Idle())
	assert.Zero(t, counted())
	keys, _ = e.Size(0)
	assert.Zero(t, keys)
}
