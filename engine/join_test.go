package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keysOfDifferentShards returns n keys, all of different shards.
func keysOfDifferentShards(e *Engine, n int) (keys []Key) {
	seen := make(map[*shard]bool)
	for i := 0; len(keys) < n; i++ {
		if k := e.Key(fmt.Append(nil, i)); !seen[e.shardOf(k)] {
			seen[e.shardOf(k)] = true
			keys = append(keys, k)
		}
	}
	return keys
}

// Join does not block, and End unlocks the shards that it has locked.
func TestJoinNeverBlocks(t *testing.T) {
	e := New(Options{})
	k := keysOfDifferentShards(e, 3)
	tx, other := e.NewTx(), e.NewTx()
	other.Begin(epoch, 0, k[2:], true)
	tx.Begin(epoch, 0, k[:1], true)
	require.True(t, tx.Join(k[:1]))
	require.False(t, tx.Join(k[1:]))
	tx.End()
	other.End()
	tx.Begin(epoch, 0, k[:1], true)
	require.True(t, tx.Join(k[1:]))
	tx.End()
	other.BeginAll(epoch, 0, true) // all shards are unlocked
	other.End()
}

// All calls of a hold happen at the latest time that any of their shards has seen, and no shard
// sees an earlier one after that.
func TestJoinedCallsHaveOneTime(t *testing.T) {
	e := New(Options{})
	k := keysOfDifferentShards(e, 2)
	tx := e.NewTx()
	begin := func(now int64, k Key) {
		tx.Begin(now, 0, []Key{k}, true)
		defer tx.End()
		assert.Equal(t, int64(epoch+5), tx.Now())
	}
	begin(epoch+5, k[1])
	tx.Begin(epoch, 0, k[:1], true)
	require.True(t, tx.Join(k[1:]))
	assert.EqualValues(t, epoch+5, tx.Now())
	tx.End()
	begin(epoch, k[0])
}

// Whether a call may write does not depend on the other calls of the hold, and lookups of read-only
// calls are counted.
func TestNextSetsDatabaseAndWriting(t *testing.T) {
	e := New(Options{})
	k := e.Key([]byte("k"))
	tx := e.NewTx()
	tx.Begin(epoch, 0, []Key{k}, true)
	tx.Set(k, []byte("v"), SetMode{})
	tx.Next(1, false)
	assert.False(t, tx.Exists(k))
	tx.Next(0, false)
	assert.True(t, tx.Exists(k))
	assert.Panics(t, func() { tx.Delete(k) })
	tx.End()
	s := e.Memory().Stats()
	assert.Equal(t, [2]int64{1, 1}, [2]int64{s.Hits, s.Misses})
}
