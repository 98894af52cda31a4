package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// apart are keys of different shards.
func apart(e *Engine, n int) (keys []Key) {
	seen := make(map[*shard]bool)
	for i := 0; len(keys) < n; i++ {
		if k := e.Key(fmt.Append(nil, i)); !seen[e.shardOf(k)] {
			seen[e.shardOf(k)] = true
			keys = append(keys, k)
		}
	}
	return keys
}

// Join waits for nobody, and leaves what it got to be let go of by End.
func TestJoinNeverBlocks(t *testing.T) {
	e := New(Options{})
	k := apart(e, 3)
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
	other.BeginAll(epoch, 0, true) // nothing is held any more
	other.End()
}

// All calls of a hold happen at the latest time that any of their shards has seen, and no shard
// sees an earlier one after that.
func TestJoinedCallsHaveOneTime(t *testing.T) {
	e := New(Options{})
	k := apart(e, 2)
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

// What a call may do is its own affair, whatever the others under the hold may; and each that only
// looks is counted.
func TestNextSetsWriting(t *testing.T) {
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
	s := e.Stats()
	assert.Equal(t, [2]int64{1, 1}, [2]int64{s.Hits, s.Misses})
}
