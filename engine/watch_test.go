package engine

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine/limit"
	"rlserver/engine/watches"
)

// watching starts a watch of keys of database 0.
func watching(c *caller, names ...string) *Watch {
	w := new(Watch)
	for _, name := range names {
		c.with(name, func(k Key) { c.tx.Watch(w, k) })
	}
	return w
}

// intact reports whether EXEC would run.
func intact(c *caller, w *Watch) bool {
	c.tx.Begin(c.now, 0, w.Keys(nil), false)
	defer c.tx.End()
	return c.tx.Intact(w)
}

func (c *caller) set(name string, expireAt int64) {
	c.with(name, func(k Key) { c.tx.Set(k, []byte("v"), SetMode{ExpireAt: expireAt}) })
}

// The cases that depend on time; the others are in the transcripts recorded from Redis.
func TestWatchSeesExpiry(t *testing.T) {
	t.Run("a key that expires has changed", func(t *testing.T) {
		c := newCaller(t, Options{})
		c.set("k", epoch+10)
		w := watching(c, "k", "other")
		c.now += 10
		assert.True(t, intact(c, w))
		c.now++
		assert.False(t, intact(c, w))
	})
	t.Run("a key that the sweeper deletes has changed", func(t *testing.T) {
		c := newCaller(t, Options{Shards: 1, Databases: 1})
		c.set("k", epoch+10)
		w := watching(c, "k")
		c.now += 11
		assert.Equal(t, 1, c.e.NewSweeper().Step(c.now))
		assert.True(t, w.Changed())
	})
	t.Run("a key that had expired before has not changed when it is deleted", func(t *testing.T) {
		c := newCaller(t, Options{Shards: 1, Databases: 1})
		c.set("k", epoch+10)
		c.now += 11
		w := watching(c, "k")
		assert.Equal(t, 1, c.e.NewSweeper().Step(c.now))
		assert.True(t, intact(c, w))
		c.set("k", 0)
		assert.False(t, intact(c, w))
	})
}

func TestWatchIgnoresDeniedCalls(t *testing.T) {
	c := newCaller(t, Options{})
	c.token("k", tokenOfOne, 1)
	w := watching(c, "k")
	assert.False(t, c.token("k", tokenOfOne, 1).Allowed)
	assert.True(t, intact(c, w))
	c.now += tokenOfOne.Period
	assert.True(t, c.token("k", tokenOfOne, 1).Allowed)
	assert.False(t, intact(c, w))
}

// Unwatch removes a watch from all shards, and no other watch.
func TestUnwatchRemovesOnlyItsWatch(t *testing.T) {
	c := newCaller(t, Options{})
	one, two := watching(c, "a", "b", "a"), watching(c, "a")
	c.tx.Begin(c.now, 0, one.Keys(nil), false)
	c.tx.Unwatch(one)
	c.tx.End()
	c.set("a", 0)
	assert.False(t, one.Changed())
	assert.True(t, two.Changed())
	c.tx.Begin(c.now, 0, two.Keys(nil), false)
	c.tx.Unwatch(two)
	c.tx.End()
	for i := range c.e.shards {
		assert.Empty(t, c.e.shards[i].watches)
	}
}

// However many watches of a key end, in whatever order, the others notice its changes.
func TestWatchesOfAKeyEndInAnyOrder(t *testing.T) {
	c, random := newCaller(t, Options{}), rand.New(rand.NewPCG(1, 2))
	var list []*Watch
	for range 2000 {
		if len(list) > 0 && random.IntN(2) == 0 {
			i := random.IntN(len(list))
			c.tx.Begin(c.now, 0, list[i].Keys(nil), false)
			c.tx.Unwatch(list[i])
			c.tx.End()
			list = slices.Delete(list, i, i+1)
		} else {
			list = append(list, watching(c, "a", "b", "a", "c"))
		}
	}
	c.set("a", 0)
	for _, w := range list {
		assert.True(t, w.Changed())
		assert.Len(t, w.Keys(nil), 3)
	}
	for _, key := range []string{"a", "b", "c"} {
		k := c.e.Key([]byte(key))
		assert.Len(t, c.e.shardOf(k).watches[watches.Place{DB: 0, Name: key}], len(list))
	}
}

// BenchmarkWatchOfABusyKey watches a key that 10,000 others watch.
func BenchmarkWatchOfABusyKey(b *testing.B) {
	e := New(Options{})
	tx, k := e.NewTx(), e.Key([]byte("k"))
	others := make([]Watch, 10_000)
	tx.Begin(1, 0, []Key{k}, false)
	for i := range others {
		tx.Watch(&others[i], k)
	}
	w := new(Watch)
	for b.Loop() {
		tx.Watch(w, k)
		tx.Unwatch(w)
	}
	tx.End()
}

// tokenOfOne admits one call a second.
var tokenOfOne = limit.Bucket{Capacity: 1, Refill: 1, Period: 1000}
