package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/eviction"
	"rlserver/engine/limit"
	"rlserver/engine/sampling"
)

// names returns the names of all keys.
func names(e *Engine) (list []string) {
	for o := range objects(e, 0) {
		list = append(list, o.Name())
	}
	return list
}

// evicted evicts until at most left keys remain, and returns their names.
func evicted(c *caller, p eviction.Policy, left int) []string {
	c.e.SetEviction(p, 100) // more than there are keys
	c.e.SetBudget(0)
	defer c.e.SetBudget(math.MaxInt64)
	for tries := 0; len(names(c.e)) > left && tries < 100; tries++ {
		v := evictor{tx: c.tx, bans: true, Sample: sampling.Sample{Policy: p, Size: 100, Keep: c.e.holdsObject}}
		v.evictFrom(&c.e.shards[0], c.now)
	}
	requireSound(c.t, c.e)
	return names(c.e)
}

// Each policy evicts keys in its order, and volatile ones only keys with a deadline.
func TestEvictionPoliciesEvictInTheirOrder(t *testing.T) {
	always := func(c *caller, name string, deadline int64) {
		c.with(name, func(k Key) { c.tx.Set(k, []byte("x"), SetMode{ExpireAt: deadline}) })
	}
	use := func(c *caller, name string, times int) {
		for range times {
			c.with(name, func(k Key) { c.tx.Get(k) })
		}
	}
	prepare := func(p eviction.Policy) *caller {
		c := newCaller(t, Options{Shards: 1})
		c.e.SetEviction(p, 100)
		for i, name := range []string{"a", "b", "c"} {
			always(c, name, 0)
			always(c, name+" ttl", epoch+int64(10_000_000-1_000_000*i))
			c.now += 10_000
		}
		c.now += 60_000
		use(c, "a", 100)
		use(c, "a ttl", 100)
		c.now += 10_000
		use(c, "b", 10)
		use(c, "b ttl", 10)
		c.now += 10_000
		use(c, "c", 1)
		use(c, "c ttl", 1)
		return c
	}
	// the remaining keys, for several numbers of them
	for p, left := range map[eviction.Policy][][]string{
		eviction.AllKeysLRU:  {{}, {"c", "c ttl"}, {"b", "b ttl", "c", "c ttl"}},
		eviction.AllKeysLFU:  {{}, {"a", "a ttl"}, {"a", "a ttl", "b", "b ttl"}},
		eviction.VolatileLRU: {{"a", "b", "c"}, {"a", "b", "c", "c ttl"}, {"a", "b", "c", "b ttl", "c ttl"}},
		eviction.VolatileLFU: {{"a", "b", "c"}, {"a", "b", "c", "a ttl"}, {"a", "b", "c", "a ttl", "b ttl"}},
		eviction.VolatileTTL: {{"a", "b", "c"}, {"a", "b", "c", "a ttl"}, {"a", "b", "c", "a ttl", "b ttl"}},
		eviction.Ratelimit:   {{"a", "b", "c"}, {"a", "b", "c", "c ttl"}, {"a", "b", "c", "b ttl", "c ttl"}},
	} {
		for _, want := range left {
			assert.ElementsMatch(t, want, evicted(prepare(p), p, len(want)), "%s, %d left", p, len(want))
		}
	}
	assert.Empty(t, evicted(prepare(eviction.AllKeysRandom), eviction.AllKeysRandom, 0))
	assert.ElementsMatch(
		t,
		[]string{"a", "b", "c"},
		evicted(prepare(eviction.VolatileRandom), eviction.VolatileRandom, 0),
	)
	for p, name := range eviction.Policies {
		assert.Equal(t, name, eviction.Policy(p).String())
	}
}

// Limiters close to their deadline are evicted first, then those that are used least. A limiter
// that denies is not evicted.
func TestRatelimitEvictsUnusedLimitersFirst(t *testing.T) {
	c := newCaller(t, Options{Shards: 1})
	rule := func(n int64) []limit.Window { return []limit.Window{{Limit: n, Length: 3_600_000}} }
	c.slide("denying", rule(2), 2, "")
	c.slide("denied once, then full", rule(2), 2, "")
	require.False(t, c.slide("denied once, then full", rule(2), 1, "").Allowed)
	c.token("full", limit.Bucket{Capacity: 2, Refill: 1, Period: 3_600_000}, 1)
	c.token("full", limit.Bucket{Capacity: 2, Refill: 1, Period: 3_600_000}, 1)
	c.slide("high", rule(10), 5, "")
	c.slide("spent", rule(1), 1, "")
	c.now += 1000
	c.slide("low", rule(10), 1, "")
	c.with("string", func(k Key) { c.tx.Set(k, nil, SetMode{ExpireAt: c.now + 3_600_000}) })
	c.with("no deadline", func(k Key) { c.tx.Set(k, nil, SetMode{}) })
	c.now += 1000
	c.slide("low, used later", rule(10), 1, "")
	c.slide("nearly over", []limit.Window{{Limit: 5, Length: 10_000}}, 3, "")
	c.now += 9_000
	require.False(t, c.slide("denying", rule(2), 1, "").Allowed)
	require.True(
		t,
		c.slide("denied once, then full", rule(3), 1, "").Allowed,
		"it is still protected like a denying limiter",
	)
	require.False(t, c.slide("high", rule(10), 11, "").Allowed, "a cost above the limit does not change the pressure")

	order := []string{"nearly over", "string", "low", "low, used later", "spent", "high", "full"}
	rest := []string{"denying", "denied once, then full", "no deadline"}
	for i := range order {
		left := evicted(c, eviction.Ratelimit, len(order)-i-1+len(rest))
		if order[i] == "string" || order[i] == "low" { // the two have the same worth
			continue
		}
		assert.ElementsMatch(t, append(order[i+1:], rest...), left, "after %s", order[i])
	}
	assert.ElementsMatch(t, rest, evicted(c, eviction.Ratelimit, 0))
	c.slide("denying", rule(5), 1, "")
	assert.ElementsMatch(t, rest[1:], evicted(c, eviction.Ratelimit, 0), "it has remaining hits again")
}

// A limiter with a waiter counts as denying, although the denial is not counted.
func TestLimitersWithWaitersAreNotEvicted(t *testing.T) {
	c := newCaller(t, Options{Shards: 1})
	rules := []limit.Window{{Limit: 1, Length: 3_600_000}}
	c.slide("waited for", rules, 1, "")
	c.slide("spent", rules, 1, "")
	c.with("waited for", func(k Key) {
		c.tx.DryRun(func() {
			d, err := c.tx.Slide(k, rules, 1, nil)
			assert.NoError(t, err)
			assert.False(t, d.Allowed)
		})
	})
	assert.Empty(t, c.tx.e.Memory().Top(0, 1))
	assert.Equal(t, []string{"waited for"}, evicted(c, eviction.Ratelimit, 0))
}

// A limiter that denied before a flood of new keys denies after it, memory stays within bounds, and
// the journal has all evictions.
func TestFloodsDoNotEvictDenyingLimiters(t *testing.T) {
	for range 5 {
		seed := rand.Uint64()
		t.Log("seed", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		log := new(recorder)
		c := newCaller(t, Options{Shards: 8, Journal: log, Seed: [2]uint64{seed, 1}})
		const budget = 200_000
		c.e.SetBudget(budget)
		c.e.SetEviction(eviction.Ratelimit, 1+r.IntN(10))
		bucket := limit.Bucket{Capacity: 3, Refill: 1, Period: 3_600_000}
		var denied []string
		for i := range 50 {
			name := fmt.Sprint("denied:", i)
			denied = append(denied, name)
			c.token(name, bucket, 3)
			require.False(t, c.token(name, bucket, 1).Allowed)
		}
		for i := range 5_000 {
			c.now += r.Int64N(100)
			room := c.tx.MakeRoom(c.now)
			require.True(t, room)
			require.LessOrEqual(t, c.e.Weight(), int64(budget+8*reportGrain))
			name := fmt.Sprint("flood:", i)
			switch r.IntN(4) {
			case 0:
				c.token(name, limit.Bucket{Capacity: 1 + r.Int64N(5), Refill: 1, Period: 1 + r.Int64N(100_000_000)}, 1)
			case 1:
				c.slide(name, []limit.Window{{Limit: 1 + r.Int64N(5), Length: 1 + r.Int64N(100_000_000)}}, 1, "")
			case 2:
				c.with(name, func(k Key) { c.tx.Fixed(k, limit.Fixed{Limit: 2, Window: limit.Every(86_400_000)}, 1) })
			case 3:
				c.with(name, func(k Key) {
					c.tx.Set(k, make([]byte, r.IntN(500)), SetMode{ExpireAt: c.now + 1 + r.Int64N(1_000_000)})
				})
			}
		}
		for _, name := range denied {
			require.False(t, c.token(name, bucket, 1).Allowed, name)
		}
		require.Greater(t, c.e.Memory().Stats().Evicted, int64(1000))
		requireSound(t, c.e)
		require.Equal(t, dump(c.e), dump(log.replayed(Options{})))
	}
}

// A string by which a caller denies calls, as INCREX does, is not evicted until the next Set.
func TestStringIsNotEvictedAfterDenied(t *testing.T) {
	c := newCaller(t, Options{Shards: 1})
	set := func(value string) {
		c.with("k", func(k Key) { c.tx.Set(k, []byte(value), SetMode{ExpireAt: epoch + 1_000_000}) })
	}
	set("1")
	c.with("k", func(k Key) { c.tx.Denied(k) })
	assert.Equal(t, []string{"k"}, evicted(c, eviction.Ratelimit, 0))
	set("2")
	assert.Empty(t, evicted(c, eviction.Ratelimit, 0))
}

func TestMakeRoomEvictsDownToTheBudget(t *testing.T) {
	c := newCaller(t, Options{Shards: 4})
	fillKeys := func(n int, deadline int64) {
		for i := range n {
			c.with(fmt.Sprint("key:", i), func(k Key) { c.tx.Set(k, make([]byte, 100), SetMode{ExpireAt: deadline}) })
		}
	}
	room := func() bool { room := c.tx.MakeRoom(c.now); return room }
	fillKeys(1000, 0)
	assert.True(t, room(), "without a budget")
	c.e.SetBudget(20_000)
	require.True(t, c.e.Crowded())
	for p := range eviction.Policies {
		c.e.SetEviction(eviction.Policy(p), DefaultSamples)
		if p := eviction.Policy(p); p == eviction.NoEviction || p.Volatile() {
			assert.False(t, room(), p)
		}
	}
	assert.Len(t, names(c.e), 1000)

	c.e.SetEviction(eviction.AllKeysLRU, DefaultSamples)
	calls := 0
	for ; c.e.Crowded(); calls++ {
		require.True(t, room(), "keys are evicted")
		require.Less(t, calls, 1000)
	}
	assert.Greater(t, calls, 1, "one call evicts only a part")
	assert.Less(t, c.e.Weight(), int64(20_000+4*reportGrain))
	assert.NotEmpty(t, names(c.e))

	fillKeys(1000, c.now+1000)
	c.e.SetEviction(eviction.Ratelimit, DefaultSamples)
	c.now += 2000
	was := c.e.Memory().Stats()
	for c.e.Crowded() {
		require.True(t, room())
	}
	is := c.e.Memory().Stats()
	assert.Equal(t, was.Evicted, is.Evicted, "expired keys are deleted first, and do not count as evicted")
	assert.Greater(t, is.Expired, was.Expired)

	tx := c.tx
	tx.BeginAll(c.now, 0, true)
	tx.FlushAll()
	tx.End()
	assert.Zero(t, c.e.Weight())
	assert.True(t, room())
}

// The only key with a deadline is found among many without.
func TestEvictionFindsTheOnlyVolatileKey(t *testing.T) {
	c := newCaller(t, Options{Shards: 1})
	for i := range 5000 {
		c.with(fmt.Sprint(i), func(k Key) { c.tx.Set(k, nil, SetMode{}) })
	}
	c.with("the one", func(k Key) { c.tx.Set(k, nil, SetMode{ExpireAt: c.now + 1_000_000}) })
	c.e.SetBudget(c.e.Weight() - 2*reportGrain)
	c.e.SetEviction(eviction.VolatileLRU, DefaultSamples)
	for range 100 {
		c.tx.MakeRoom(c.now)
	}
	assert.EqualValues(t, 1, c.e.Memory().Stats().Evicted)
	assert.NotContains(t, names(c.e), "the one")
}

// A snapshot taken during a flood, and the journal after it, give the final state; and the snapshot
// does not save evicted objects.
func TestSnapshotDuringEvictionsIsComplete(t *testing.T) {
	for range 5 {
		seed := rand.Uint64()
		t.Log("seed", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		log := new(recorder)
		c := newCaller(t, Options{Shards: 4, Journal: log, Seed: [2]uint64{seed, 1}})
		c.e.SetBudget(150_000)
		some := func() string { return fmt.Sprint("key:", r.IntN(3000)) }
		call := func() {
			c.now += r.Int64N(20)
			room := c.tx.MakeRoom(c.now)
			require.True(t, room)
			c.slide(some(), []limit.Window{{Limit: 1000, Length: 3_600_000}}, 1, "")
			c.token("t"+some(), limit.Bucket{Capacity: 1000, Refill: 1, Period: 60_000}, 1)
			from, to := c.e.Key([]byte(some())), c.e.Key([]byte(some()))
			c.tx.Begin(c.now, 0, []Key{from, to}, true)
			switch r.IntN(4) { // errors, for a missing or the same key, change nothing
			case 0:
				_, _ = c.tx.Copy(from, to, 0, true)
			case 1:
				_, _ = c.tx.Copy(from, to, 1, true)
			case 2:
				_ = c.tx.Rename(from, to)
			}
			c.tx.End()
		}
		for range 2000 {
			call()
		}
		var restored []effect.Effect
		cut := 0
		s := c.e.Snapshot(func() { cut = len(log.calls) })
		most := 0
		for more := true; more; {
			for range r.IntN(100) {
				call()
			}
			kept := 0
			for _, b := range s.Kept() {
				kept += b.Size()
			}
			most = max(most, kept)
			more = s.Step(func(effects []effect.Effect) {
				restored = append(restored, copies(effects)...)
			})
		}
		done, total := s.Keys()
		require.Equal(t, total, done)
		require.Greater(t, c.e.Memory().Stats().Evicted, int64(1000))
		// some 5000 if evicted keys were kept
		require.Less(t, most, 3500, "bytes kept for the snapshot")

		replica := New(Options{})
		require.NoError(t, replica.Apply(0, restored))
		for _, call := range log.calls[cut:] {
			require.NoError(t, replica.Apply(0, call))
		}
		require.Equal(t, dump(c.e), dump(replica))
	}
}

func BenchmarkMakeRoom(b *testing.B) {
	e := New(Options{})
	tx, r := e.NewTx(), limit.Bucket{Capacity: 10, Refill: 1, Period: 86_400_000}
	flood := func(i int) {
		k := [1]Key{e.Key(fmt.Appendf(nil, "user:%d", i))}
		tx.Begin(epoch, 0, k[:], true)
		tx.Token(k[0], r, 1)
		tx.End()
	}
	i := 0
	for ; i < 1_000_000; i++ {
		flood(i)
	}
	e.SetBudget(e.Weight())
	b.ReportAllocs()
	for b.Loop() {
		if e.Crowded() {
			tx.MakeRoom(epoch)
		}
		flood(i)
		i++
	}
}

// TestEnginesShareAMemory has an engine that evicts for another one, down to its share of the
// budget.
func TestEnginesShareAMemory(t *testing.T) {
	m := NewMemory()
	follows, leads := newCaller(t, Options{Shards: 2, Memory: m}), newCaller(t, Options{Shards: 2, Memory: m})
	fill := func(c *caller, n int) {
		for i := range n {
			c.with(fmt.Sprint("key:", i), func(k Key) { c.tx.Set(k, make([]byte, 100), SetMode{}) })
		}
	}
	makeRoom := func() {
		for leads.e.Crowded() && leads.tx.MakeRoom(leads.now) {
		}
	}
	fill(follows, 1000)
	fill(leads, 2000)
	each := follows.e.Weight()
	assert.Equal(t, each+leads.e.Weight(), m.Weight())
	assert.Equal(t, 3000, m.Keys())
	assert.Len(t, m.Engines(), 2)
	leads.e.SetEviction(eviction.AllKeysLRU, DefaultSamples)
	leads.e.SetBudget(each * 5 / 2)
	assert.True(t, follows.e.Crowded(), "the budget is that of both")
	makeRoom()
	assert.False(t, leads.e.Crowded())
	assert.InDelta(t, each*3/2, leads.e.Weight(), 8*reportGrain)

	leads.e.SetBudget(each)
	leads.e.SetBound(2 * each)
	makeRoom()
	assert.InDelta(t, each/2, leads.e.Weight(), 8*reportGrain, "it evicts what is above its share")
	assert.False(t, leads.tx.MakeRoom(leads.now))
	assert.False(t, m.Full())
	assert.Len(t, names(follows.e), 1000, "an engine that is not asked evicts nothing")
	leads.e.SetBound(each)
	assert.True(t, m.Full())

	follows.e.Discard()
	follows.e.Discard()
	assert.Empty(t, names(follows.e), "connections that still refer to it keep none of its keys in memory")
	assert.Zero(t, follows.e.Weight())
	fill(follows, 2000)
	assert.Equal(t, leads.e.Weight(), m.Weight(), "what is discarded does not count")
	assert.Len(t, m.Engines(), 1)
	assert.False(t, leads.e.Crowded())
	fill(leads, 2000)
	makeRoom()
	assert.InDelta(t, each, leads.e.Weight(), 8*reportGrain, "all of the budget is its share now")
}

// Looks at few keys go around, and meet keys twice: each is evicted once. Nothing is evicted that
// fits the budget.
func TestFewKeysAreEvictedOnce(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 4))
		c := newCaller(t, Options{Shards: 1, Seed: [2]uint64{seed, 5}})
		c.e.SetEviction([]eviction.Policy{
			eviction.AllKeysLRU, eviction.AllKeysLFU, eviction.AllKeysRandom, eviction.VolatileTTL, eviction.Ratelimit,
		}[r.IntN(5)], 1+r.IntN(6))
		for range 60 {
			for range r.IntN(30) {
				name, m := fmt.Sprint(r.IntN(40)), SetMode{}
				if r.IntN(3) > 0 {
					m.ExpireAt = c.now + 1 + r.Int64N(1_000_000)
				}
				c.with(name, func(k Key) { c.tx.Set(k, make([]byte, 2000), m) })
			}
			before, keys := c.e.Weight(), c.e.Memory().Keys()
			c.e.SetBudget(before - 1 - r.Int64N(20_000))
			evicted := c.e.Memory().Stats().Evicted
			c.tx.MakeRoom(c.now)
			gone := int64(keys - c.e.Memory().Keys())
			require.Equal(t, gone, c.e.Memory().Stats().Evicted-evicted)
			if gone > 0 {
				require.Greater(t, c.e.Weight()+2300, c.e.Budget(), "no more than is needed")
			}
			requireSound(t, c.e)
			c.e.SetBudget(math.MaxInt64)
		}
	}
}
