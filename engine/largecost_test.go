package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/reserve"
	"rlserver/zset"
)

// A call without an id costs what it likes: its hits are one entry.
func TestCostsOfAllSizes(t *testing.T) {
	c := newCaller(t, Options{Shards: 1})
	rules := []limit.Window{{Limit: limit.MaxCount, Length: 1000}}
	for _, key := range []string{"a", "b", "c"} { // together more than a millisecond has numbers
		d := c.slide(key, rules, limit.MaxCount, "")
		assert.Equal(t, limit.Decision{Allowed: true, Limit: limit.MaxCount, ResetAfter: 1000}, d, key)
		d = c.slide(key, rules, 1, "")
		assert.EqualValues(t, 1000, d.RetryAfter)
	}
	half := int64(limit.MaxCount / 2)
	c.with("a", func(k Key) {
		n, err := c.tx.Refund(k, half, nil)
		require.NoError(t, err)
		assert.Equal(t, half, n)
	})
	assert.EqualValues(t, half, c.slide("a", rules, 0, "").Remaining)
	assert.True(t, c.slide("a", rules, half, "").Allowed)
	c.now += 999
	assert.EqualValues(t, 1, c.slide("a", rules, 1, "").RetryAfter)
	c.now++
	assert.True(t, c.slide("a", rules, limit.MaxCount, "").Allowed)
	for _, key := range []string{"a", "b", "c"} {
		c.with(key, func(k Key) {
			z, _ := c.tx.lookup(k).(*object.ZSet)
			if z != nil {
				require.NoError(t, z.Set.Check())
			}
		})
	}
}

// If a millisecond lacks free numbers in a row, the hits get those that there are.
func TestLargeCostBetweenMembersOfClients(t *testing.T) {
	c := newCaller(t, Options{Shards: 1})
	rules := []limit.Window{{Limit: limit.MaxCount, Length: 1000}}
	c.with("k", func(k Key) {
		for _, seq := range []uint64{1 << 51, 1 << 52, 3 << 51} {
			member := effect.Hits{At: c.now}.Member(nil, seq)
			_, _, err := c.tx.ZAdd(k, 0, []zset.Member{{Member: member, Score: float64(c.now)}})
			require.NoError(t, err)
		}
	})
	assert.EqualValues(t, limit.MaxCount-3, c.slide("k", rules, 0, "").Remaining)
	d := c.slide("k", rules, limit.MaxCount-1000, "")
	assert.True(t, d.Allowed)
	assert.EqualValues(t, 997, d.Remaining)
	c.with("k", func(k Key) {
		z := c.tx.lookup(k).(*object.ZSet)
		require.NoError(t, z.Set.Check())
		assert.EqualValues(t, limit.MaxCount-997, z.Set.Len())
	})
}

// What a log of many hits holds is in its digest, and a snapshot has the same.
func TestDigestOfManyHits(t *testing.T) {
	c := newCaller(t, Options{Shards: 1})
	rules := []limit.Window{{Limit: limit.MaxCount, Length: moveHour}}
	digest := func() (d object.Digest) {
		c.with("k", func(k Key) { d = c.tx.Digest(k) })
		return d
	}
	seen := make(map[object.Digest]bool)
	for _, cost := range []int64{1 << 40, 1, 1 << 30} {
		c.slide("k", rules, cost, "")
		c.now += cost % 7
		seen[digest()] = true
	}
	assert.Len(t, seen, 3)
	before := digest()
	c.tx.BeginAll(c.now, 0, false)
	c.tx.Reload()
	c.tx.End()
	assert.Equal(t, before, digest())
}

// The hits of large costs move back together when the clock was ahead, also between others.
func TestMoveBackOfManyHits(t *testing.T) {
	c := newCaller(t, Options{Shards: 1})
	rules := []limit.Window{{Limit: limit.MaxCount, Length: 60_000}}
	present := c.now
	c.now += moveYear
	for _, cost := range []int64{1 << 45, 20, 3, 1 << 20} {
		c.slide("k", rules, cost, "")
		c.now += 5
	}
	c.with("k", func(k Key) { // between the names of hits
		for _, member := range []string{effectName(c.now-20, 0) + "x", effectName(c.now-20, 15) + "x"} {
			_, _, err := c.tx.ZAdd(k, 0, []zset.Member{{Member: []byte(member), Score: float64(c.now - 20)}})
			require.NoError(t, err)
		}
	})
	used := int64(1<<45 + 20 + 3 + 1<<20)
	c.e.MoveBack(c.now, present)
	c.now = present
	d := c.slide("k", rules, 0, "")
	assert.LessOrEqual(t, d.ResetAfter, int64(60_000))
	assert.EqualValues(t, limit.MaxCount-used-2, d.Remaining)
	c.with("k", func(k Key) { require.NoError(t, c.tx.lookup(k).(*object.ZSet).Set.Check()) })
}

func effectName(at int64, seq uint64) string { return string(effect.Hits{At: at}.Member(nil, seq)) }

// Settlements of more hits than a log can count fill it, and leave its numbers sound.
func TestSettlementsBeyondWhatALogCounts(t *testing.T) {
	c := newCaller(t, Options{Shards: 1})
	rules := []limit.Window{{Limit: 10, Length: moveHour}}
	c.with("k", func(k Key) {
		_, err := c.tx.SlideAs(Limit{Key: k, Cost: 1, Hold: reserve.Request{Call: []byte("a"), TTL: 1000}}, rules)
		require.NoError(t, err)
		for i := range 5 {
			s, err := c.tx.Settle([]Key{k}, []int64{limit.MaxCount - 1}, fmt.Append(nil, i))
			require.NoError(t, err)
			assert.Equal(t, []reserve.Settled{{First: true}}, s)
		}
		z := c.tx.lookup(k).(*object.ZSet)
		require.NoError(t, z.Set.Check())
		assert.EqualValues(t, limit.MaxCount, z.Set.Len())
	})
	assert.False(t, c.slide("k", rules, 1, "").Allowed)
	c.now += moveHour
	assert.True(t, c.slide("k", rules, 1, "").Allowed)
}
