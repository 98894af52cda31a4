package engine

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/object"
)

// fill sets the keys name:0 … name:n-1 of a database to a string with a deadline.
func fill(e *Engine, db int, name string, n int, expireAt int64) {
	tx := e.NewTx()
	for i := range n {
		k := e.Key(fmt.Appendf(nil, "%s:%d", name, i))
		tx.Begin(epoch, db, []Key{k}, true)
		tx.Set(k, []byte("v"), SetMode{ExpireAt: expireAt})
		tx.End()
	}
}

// scanAll scans from beginning to end, calls between after each step, and returns how often each
// key was seen.
func scanAll(t *testing.T, e *Engine, now int64, db, count int, between func()) map[string]int {
	t.Helper()
	seen := make(map[string]int)
	tx := e.NewTx()
	for cursor, calls := uint64(0), 0; ; calls++ {
		require.Less(t, calls, 100_000, "the scan does not end")
		cursor, _ = tx.Scan(now, db, cursor, count, func(name []byte, kind object.Type) {
			seen[string(name)]++
			require.Equal(t, object.TypeString, kind)
		})
		require.Less(t, cursor, uint64(1)<<53, "a cursor that JavaScript can hold")
		if cursor == 0 {
			return seen
		}
		between()
	}
}

func TestScanReturnsEachKeyOnce(t *testing.T) {
	for _, shards := range []int{1, 2, 64, 4096} {
		for _, count := range []int{1, 7, 10, 1000, 100000} {
			e := New(Options{Shards: shards})
			fill(e, 3, "k", 500, 0)
			fill(e, 3, "gone", 100, epoch+10)
			fill(e, 4, "other", 100, 0)
			seen := scanAll(t, e, epoch+11, 3, count, func() {})
			assert.Len(t, seen, 500, "%d shards, count %d", shards, count)
			for i := range 500 {
				require.Equal(t, 1, seen[fmt.Sprint("k:", i)])
			}
		}
	}
	assert.Empty(t, scanAll(t, New(Options{}), epoch, 0, 10, func() {}))
}

// A scan returns a key that exists from beginning to end exactly once, whatever other keys are
// added and deleted meanwhile.
func TestScanDuringChanges(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 20 {
		e := New(Options{Shards: 1 << r.IntN(7), Seed: [2]uint64{r.Uint64(), 0}})
		n := 1 + r.IntN(1000)
		fill(e, 0, "stays", n, 0)
		fill(e, 0, "goes", 1+r.IntN(2000), 0)
		tx := e.NewTx()
		seen := scanAll(t, e, epoch, 0, 1+r.IntN(30), func() {
			for range 20 {
				k := e.Key(fmt.Appendf(nil, "goes:%d", r.IntN(2000)))
				tx.Begin(epoch, 0, []Key{k}, true)
				if !tx.Delete(k) {
					tx.Set(k, []byte("back"), SetMode{})
				}
				tx.End()
			}
		})
		for i := range n {
			require.Equal(t, 1, seen[fmt.Sprint("stays:", i)])
		}
		requireSound(t, e)
	}
}

// Cursors that no scan returned are harmless.
func TestScanAcceptsAnyCursor(t *testing.T) {
	e := New(Options{Shards: 4})
	fill(e, 0, "k", 100, 0)
	tx := e.NewTx()
	for _, cursor := range []uint64{1, 1 << 31, 1<<32 - 1, 1 << 32, 3<<32 | 1<<31, 4 << 32, 1 << 53, 1<<64 - 1} {
		for calls := 0; cursor != 0; calls++ {
			require.Less(t, calls, 1000)
			cursor, _ = tx.Scan(epoch, 0, cursor, 10, func([]byte, object.Type) {})
		}
	}
}

// Within a call on the whole keyspace a scan uses the locks and the time of that call.
func TestScanUnderAllLocks(t *testing.T) {
	e := New(Options{Shards: 4})
	fill(e, 0, "k", 100, epoch+5)
	tx := e.NewTx()
	tx.BeginAll(epoch+5, 0, false)
	n := 0
	next, _ := tx.Scan(epoch+6, 0, 0, 1000, func([]byte, object.Type) { n++ })
	assert.Zero(t, next)
	assert.Equal(t, 100, n)
	tx.End()
	next, _ = tx.Scan(epoch+6, 0, 0, 1000, func([]byte, object.Type) { n++ })
	assert.Zero(t, next)
	assert.Equal(t, 100, n)
}

func TestKeysSkipsExpired(t *testing.T) {
	e := New(Options{})
	fill(e, 0, "k", 100, 0)
	fill(e, 0, "gone", 100, epoch)
	fill(e, 1, "other", 10, 0)
	tx := e.NewTx()
	tx.BeginAll(epoch+1, 0, false)
	seen := make(map[string]object.Type)
	for name, kind := range tx.Keys() {
		seen[string(name)] = kind
	}
	assert.Len(t, seen, 100)
	for i := range 100 {
		assert.Equal(t, object.TypeString, seen[fmt.Sprint("k:", i)])
	}
	for range tx.Keys() {
		break
	}
	assert.Equal(t, 200, tx.Size(), "expired keys count until they are deleted")
	tx.End()

	keys, expires := e.Size(0)
	assert.Equal(t, 200, keys)
	assert.Equal(t, 100, expires)
}

// RandomKey returns each key about as often as any other, and no expired one. The seed is fixed, so
// the test cannot fail by chance.
func TestRandomKeyIsFair(t *testing.T) {
	e := New(Options{Shards: 8, Seed: [2]uint64{1, 2}})
	fill(e, 0, "k", 50, 0)
	fill(e, 0, "gone", 100, epoch)
	tx, r := e.NewTx(), rand.New(rand.NewPCG(1, 2))
	drawn := make(map[string]int)
	for range 10_000 {
		tx.BeginAll(epoch+1, 0, false)
		name, ok := tx.RandomKey(r)
		require.True(t, ok)
		drawn[string(name)]++
		tx.End()
	}
	assert.Len(t, drawn, 50)
	// 200 on average; the bounds are 7 standard deviations away
	assert.Greater(t, slices.Min(slices.Collect(maps.Values(drawn))), 100)
	assert.Less(t, slices.Max(slices.Collect(maps.Values(drawn))), 300)
}

func TestRandomKeySkipsExpired(t *testing.T) {
	e := New(Options{})
	tx, r := e.NewTx(), rand.New(rand.NewPCG(1, 2))
	draw := func() (string, bool) {
		tx.BeginAll(epoch+1, 0, false)
		defer tx.End()
		name, ok := tx.RandomKey(r)
		return string(name), ok
	}
	_, ok := draw()
	assert.False(t, ok, "no key at all")
	fill(e, 0, "gone", 5000, epoch)
	_, ok = draw()
	assert.False(t, ok, "only expired keys")
	fill(e, 0, "lives", 1, 0)
	name, ok := draw()
	assert.True(t, ok)
	assert.Equal(t, "lives:0", name)
}

func BenchmarkScan(b *testing.B) {
	e := New(Options{})
	tokens(e, 100_000)
	tx := e.NewTx()
	visit := func([]byte, object.Type) {}
	cursor := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		cursor, _ = tx.Scan(epoch, 0, cursor, 10, visit)
	}
}

func BenchmarkKeys(b *testing.B) {
	e := New(Options{})
	tokens(e, 1_000_000)
	tx := e.NewTx()
	b.ReportAllocs()
	for b.Loop() {
		tx.BeginAll(epoch, 0, false)
		for range tx.Keys() {
		}
		tx.End()
	}
}

// A scan calls visit when it holds no shard, so that a slow visit delays no other call.
func TestScanVisitsUnderNoLock(t *testing.T) {
	e := New(Options{Shards: 1})
	fill(e, 0, "k", 1000, 0)
	scanning, other := e.NewTx(), e.NewTx()
	visited := 0
	for cursor, more := uint64(0), true; more; more = cursor != 0 {
		cursor, _ = scanning.Scan(epoch, 0, cursor, 700, func(name []byte, _ object.Type) {
			k := e.Key(name)
			other.Begin(epoch, 0, []Key{k}, false) // waits forever if the shard is held
			assert.True(t, other.Exists(k))
			other.End()
			visited++
		})
	}
	assert.Equal(t, 1000, visited)
}
