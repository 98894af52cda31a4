package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
)

// A call with an id is one entry, whatever it costs: it is recorded and recognized at once, and a
// refund finds its hits.
func TestCallsWithIDOfAnyCost(t *testing.T) {
	c := newCaller(t, Options{})
	rules := []limit.Window{{Limit: limit.MaxCount, Length: 60_000}}
	require.True(t, c.slide("k", rules, limit.MaxCount-5, "r").Allowed)
	d := c.slide("k", rules, limit.MaxCount-5, "r")
	require.True(t, d.Free)
	require.EqualValues(t, 5, d.Remaining)
	require.False(t, c.slide("k", rules, 6, "s").Allowed)
	require.EqualValues(t, 1000, c.Refund("k", 1000, "r"))
	require.EqualValues(t, 1005, c.slide("k", rules, 0, "").Remaining)
	c.now += 60_000
	require.True(t, c.slide("k", rules, limit.MaxCount, "r").Allowed, "the hits have left the window")
	require.EqualValues(t, int64(limit.MaxCount), c.Refund("k", limit.MaxCount, "r"))
	require.Equal(t, "nothing", c.Content("k"))
}

// What is left of a call whose first hit a client has removed does not hide the hits of the next
// with its id.
func TestCallsAfterTheirFirstHitIsRemoved(t *testing.T) {
	c := newCaller(t, Options{})
	rules := []limit.Window{{Limit: limit.MaxCount, Length: 60_000}}
	c.slide("k", rules, 1_000_000_000, "a")
	c.with("k", func(k Key) {
		_, err := c.tx.ZRem(k, [][]byte{[]byte("a")})
		require.NoError(t, err)
	})
	c.slide("k", rules, 1_000_000_000, "a")
	require.EqualValues(t, limit.MaxCount-1_999_999_999, c.slide("k", rules, 0, "").Remaining)
	require.EqualValues(t, 1_999_999_999, c.Refund("k", 2_000_000_000, "a"))
}

// Effects rebuild calls with ids, and a snapshot has them.
func TestCallsInSnapshots(t *testing.T) {
	e := New(Options{})
	k := e.Key([]byte("k"))
	var effects []effect.Effect
	for i := range int64(300) {
		h := effect.Hits{At: epoch + i, Seq: 1, N: 1 + i*i*1_000_000}
		f := effect.Effect{Kind: effect.Call, Key: k, Field: fmt.Append(nil, "id", i), Hits: h, ExpireAt: epoch + 9000}
		effects = append(effects, f)
	}
	require.NoError(t, e.Apply(epoch, effects))
	restored := New(Options{})
	for snapshot := e.Snapshot(func() {}); snapshot.Step(func(effects []effect.Effect) {
		require.NoError(t, restored.Apply(epoch, effects))
	}); {
	}
	require.Equal(t, digestOf(e, epoch), digestOf(restored, epoch))
	requireSound(t, restored)
}

// MoveBack keeps what calls with ids have used, and their ids.
func TestMoveBackMovesCalls(t *testing.T) {
	c := newCaller(t, Options{})
	rules := []limit.Window{{Limit: 1 << 40, Length: moveHour}}
	c.slide("k", rules, 1<<30, "a")
	c.now += 10
	c.slide("k", rules, 1, "b")
	c.slide("k", rules, 2, "")
	back := c.now - 2*moveHour
	c.e.MoveBack(c.now, back)
	c.now = back
	require.EqualValues(t, 1<<40-1<<30-3, c.slide("k", rules, 0, "").Remaining)
	require.True(t, c.slide("k", rules, 5, "a").Free)
	require.True(t, c.slide("k", rules, 5, "b").Free)
	requireSound(t, c.e)
}
