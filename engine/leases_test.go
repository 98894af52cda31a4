package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/limit"
	"rlserver/zset"
)

func (c *caller) lease(name string, l limit.Lease, id string) (d limit.Decision) {
	c.with(name, func(k Key) {
		var err error
		d, err = c.tx.Lease(k, l, []byte(id))
		require.NoError(c.t, err)
	})
	return d
}

func (c *caller) release(name, id string) (released bool) {
	c.with(name, func(k Key) {
		var err error
		released, err = c.tx.Release(k, []byte(id))
		require.NoError(c.t, err)
	})
	return released
}

func TestLeasesOnKeys(t *testing.T) {
	c := newCaller(t, Options{})
	two := limit.Lease{Limit: 2, TTL: 1000}
	assert.False(t, c.release("k", "a"), "of a missing key")
	c.lease("k", two, "a")
	c.now += 400
	c.lease("k", two, "b")
	assert.Equal(t, "log until 1767225601400: a@1767225601000 b@1767225601400", c.Content("k"))
	assert.Equal(t, limit.Decision{Limit: 2, RetryAfter: 600, ResetAfter: 1000}, c.lease("k", two, "c"))
	assert.Equal(
		t,
		limit.Decision{Allowed: true, Free: true, Limit: 2, ResetAfter: 1000},
		c.lease("k", two, "a"),
		"renewed when full",
	)
	assert.True(t, c.release("k", "a"))
	assert.False(t, c.release("k", "a"), "once")
	c.lease("k", limit.Lease{Limit: 2, TTL: 200}, "c")
	assert.Equal(t, "log until 1767225601400: c@1767225600600 b@1767225601400", c.Content("k"))

	assert.True(t, c.release("k", "b"))
	assert.Equal(t, "log until 1767225600600: c@1767225600600", c.Content("k"), "the deadline is the last expiry")
	c.now += 200
	assert.False(t, c.release("k", "c"), "it has expired")
	assert.Equal(
		t,
		"log until 1767225601600: d@1767225601600",
		func() string { c.lease("k", two, "d"); return c.Content("k") }(),
		"expired leases are dropped",
	)
	assert.True(t, c.release("k", "d"))
	assert.Equal(t, "nothing", c.Content("k"))
}

// A lease that a client has written by ZADD counts like any other.
func TestLeasesWrittenByClientsCount(t *testing.T) {
	c := newCaller(t, Options{})
	c.with("k", func(k Key) {
		c.tx.ZAdd(
			k,
			0,
			[]zset.Member{{Member: []byte("half"), Score: epoch + 10.5}, {Member: []byte("gone"), Score: epoch}},
		)
	})
	assert.EqualValues(t, 11, c.lease("k", limit.Lease{Limit: 1, TTL: 5}, "a").RetryAfter)
	assert.EqualValues(t, 0, c.lease("k", limit.Lease{Limit: 2, TTL: 5}, "a").Remaining)
	assert.True(t, c.release("k", "a"))
	assert.Equal(t, "log until 1767225600011: half@1767225600010", c.Content("k"))
}

func TestLeasesRefuseOtherTypes(t *testing.T) {
	c := newCaller(t, Options{})
	c.token("t", limit.Bucket{Capacity: 1, Refill: 1, Period: 1000}, 1)
	c.with("t", func(k Key) {
		_, err := c.tx.Lease(k, limit.Lease{Limit: 1, TTL: 1}, []byte("a"))
		assert.Equal(t, ErrWrongType, err)
		_, err = c.tx.Release(k, []byte("a"))
		assert.Equal(t, ErrWrongType, err)
		_, _, err = c.tx.Leaky(k, limit.Bucket{Capacity: 1, Refill: 1, Period: 1}, 1)
		assert.NoError(t, err, "a leaky bucket is a token bucket")
	})
	c.lease("z", limit.Lease{Limit: 1, TTL: 1000}, "a")
	c.with("z", func(k Key) {
		_, _, err := c.tx.Leaky(k, limit.Bucket{Capacity: 1, Refill: 1, Period: 1}, 1)
		assert.Equal(t, ErrWrongType, err)
	})
}

// The laws for leases on keys, with repeated ids, released leases and deleted keys.
func TestLeasesMatchBruteForce(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range histories(200) {
		c, held := newCaller(t, Options{}), make(map[string]int64)
		admits := func(l limit.Lease, id string, at int64) bool {
			n := int64(0)
			for _, lapses := range held {
				if lapses > at {
					n++
				}
			}
			return held[id] > at || n < l.Limit
		}
		for range 150 {
			c.now += r.Int64N(10) * r.Int64N(3)
			id := fmt.Sprint("id", r.IntN(7))
			if r.IntN(4) == 0 {
				require.Equal(t, held[id] > c.now, c.release("k", id))
				delete(held, id)
				continue
			}
			rule, before := limit.Lease{Limit: 1 + r.Int64N(4), TTL: 1 + r.Int64N(60)}, c.Content("k")
			d := c.lease("k", rule, id)
			require.Equal(t, admits(rule, id, c.now), d.Allowed)
			if !d.Allowed {
				require.Equal(t, before, c.Content("k"))
				require.False(t, admits(rule, id, c.now+d.RetryAfter-1), "too late: %+v", d)
				require.True(t, admits(rule, id, c.now+d.RetryAfter), "too early: %+v", d)
				continue
			}
			held[id] = c.now + rule.TTL
			last := int64(0)
			for _, lapses := range held {
				last = max(last, lapses)
			}
			require.Equal(t, last-c.now, d.ResetAfter)
			require.Contains(t, c.Content("k"), fmt.Sprint("log until ", last, ":"))
		}
	}
}
