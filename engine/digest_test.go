package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/rule"
	"rlserver/zset"
)

func digestOf(e *Engine, now int64) object.Digest {
	tx := e.NewTx()
	tx.BeginAll(now, 0, false)
	defer tx.End()
	return tx.DigestAll()
}

// Equal keys have equal digests, regardless of history, seed and shards. The transcripts compare
// digests with those of Redis.
func TestDigestDependsOnContentOnly(t *testing.T) {
	w := newWalk(7, Options{Shards: 1}).steps(2000)
	other := w.log.replayed(Options{Shards: 8, Databases: walkDatabases, Seed: [2]uint64{3, 4}})
	require.NotZero(t, digestOf(w.e, w.now))
	assert.Equal(t, digestOf(w.e, w.now), digestOf(other, w.now))

	before := digestOf(w.e, w.now)
	k := w.e.Key([]byte("bucket"))
	w.tx.Begin(w.now, 1, []Key{k}, true)
	_, err := w.tx.Token(k, limit.Bucket{Capacity: 10, Refill: 1, Period: 1000}, 1)
	w.tx.End()
	require.NoError(t, err)
	used := digestOf(w.e, w.now)
	assert.NotEqual(t, before, used)
	w.tx.Begin(w.now, 1, []Key{k}, true)
	w.tx.Token(k, limit.Bucket{Capacity: 10, Refill: 1, Period: 1000}, 1)
	w.tx.End()
	assert.NotEqual(t, used, digestOf(w.e, w.now))
}

// Each call of a limiter changes the digest.
func TestDigestCoversTheStateOfEachLimiter(t *testing.T) {
	for name, l := range map[string]Limit{
		"slide":   {Rule: rule.Rule{Kind: rule.Slide, Slide: limit.Window{Limit: 9, Length: 1000}}},
		"token":   {Rule: rule.Rule{Kind: rule.Token, Token: limit.Bucket{Capacity: 9, Refill: 1, Period: 1000}}},
		"leaky":   {Rule: rule.Rule{Kind: rule.Leaky, Token: limit.Bucket{Capacity: 9, Refill: 1, Period: 1000}}},
		"fixed":   {Rule: rule.Rule{Kind: rule.Fixed, Fixed: limit.Fixed{Limit: 9, Window: limit.Every(1000)}}},
		"counter": {Rule: rule.Rule{Kind: rule.Counter, Counter: limit.Counter{Limit: 9, Window: 1000}}},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(Options{Databases: 1})
			tx := e.NewTx()
			l.Key = e.Key([]byte("k"))
			seen := make(map[string]bool)
			for range 3 {
				tx.Begin(5000, 0, []Key{l.Key}, true)
				d, err := tx.decideAt(&l, 1)
				tx.End()
				require.NoError(t, err)
				require.True(t, d.Allowed)
				digest := fmt.Sprint(digestOf(e, 5000))
				assert.False(t, seen[digest])
				seen[digest] = true
			}
		})
	}
}

// Reload restores every detail that a snapshot has, of large collections too, and a snapshot in
// progress continues.
func TestReloadKeepsAllKeys(t *testing.T) {
	for seed := range uint64(10) {
		w := newWalk(seed, Options{Shards: 4}).steps(1500)
		large := [][]byte{}
		for i := range 3000 {
			large = append(large, fmt.Appendf(nil, "f%d", i), fmt.Appendf(nil, "v%d", i))
		}
		hash, sorted := w.e.Key([]byte("large hash")), w.e.Key([]byte("large zset"))
		w.tx.Begin(w.now, 0, []Key{hash, sorted}, true)
		w.tx.HSet(hash, large)
		for i := range 3000 {
			w.tx.ZAdd(sorted, 0, []zset.Member{{Member: large[i], Score: float64(i)}})
		}
		w.tx.End()
		logged := len(w.log.calls)
		before, weight, digest := dump(w.e), w.e.Weight(), digestOf(w.e, w.now)
		s := w.e.Snapshot(func() {})
		s.Step(func([]effect.Effect) {})

		w.tx.BeginAll(w.now, 0, false)
		keys := w.tx.Reload()
		w.tx.End()

		assert.Positive(t, keys)
		assert.Len(t, w.log.calls, logged, "nothing has changed")
		assert.Equal(t, before, dump(w.e))
		assert.Equal(t, digest, digestOf(w.e, w.now))
		assert.InEpsilon(t, weight, w.e.Weight(), 0.1)
		for s.Step(func([]effect.Effect) {}) {
		}
		requireSound(t, w.e)
		w.steps(100)
		requireSound(t, w.e)
	}
}
