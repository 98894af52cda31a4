package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine/limit"
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

// tokenOfOne admits one call a second.
var tokenOfOne = limit.Bucket{Capacity: 1, Refill: 1, Period: 1000}
