package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// While a script holds a shard for long, other calls are refused on it, and the background work
// goes on with the others.
func TestHeldShardsKeepNobodyWaiting(t *testing.T) {
	e := New(Options{Shards: 4})
	fill(e, 0, "k", 100, epoch+1)
	script, other := e.NewTx(), e.NewTx()
	key := e.Key([]byte("k:1"))
	script.Begin(epoch, 0, []Key{key}, true)
	script.Hold()
	require.True(t, e.Held())
	assert.False(t, other.BeginUnlessHeld(epoch, 0, []Key{key}, false, true))
	assert.False(t, other.BeginUnlessHeld(epoch, 0, nil, true, true))
	within(t, "the sweeper or RL.TOP waits for a script", func() {
		sweeper := e.NewSweeper()
		for sweeper.Rounds() < 2 {
			sweeper.Step(epoch + 10)
		}
		e.Top(0, 1)
		e.NameOf(0, key.Hash)
	})
	left, _ := e.Size(0)
	assert.Less(t, left, 60, "keys of other shards have expired")
	assert.Positive(t, left)

	e.memory.budget.Store(1)
	within(t, "an eviction waits for a script", func() { other.MakeRoom(epoch + 10) })
	script.Resume()
	script.End()
	require.True(t, other.BeginUnlessHeld(epoch, 0, nil, true, true))
	other.End()
}
