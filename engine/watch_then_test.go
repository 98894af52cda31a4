package engine

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine/limit"
	"rlserver/zset"
)

// Then is called at the end of each call that changes the key, in the key's database; what it
// changes is part of the call, and makes it be called again.
func TestThenRunsAfterEachChange(t *testing.T) {
	var journal recorder
	c := newCaller(t, Options{Journal: &journal})
	var called int
	w := &Watch{}
	w.Then = func(tx *Tx) {
		called++
		_, err := tx.ZPop([]Key{c.e.Key([]byte("k"))}, 1, false, func(Key, zset.Members) {})
		assert.NoError(t, err)
		tx.Afterwards(func(p Position) { assert.EqualValues(t, len(journal.calls), p) })
	}
	c.with("k", func(k Key) { c.tx.Watch(w, k) })
	c.with("other", func(k Key) { c.tx.ZAdd(k, 0, []zset.Member{{Member: []byte("a"), Score: 1}}) })
	assert.Zero(t, called)
	c.with("k", func(k Key) {
		c.tx.ZAdd(k, 0, []zset.Member{{Member: []byte("a"), Score: 1}, {Member: []byte("b"), Score: 2}})
	})
	assert.Equal(t, 3, called, "once for the call, and once for each member that it popped")
	assert.Len(t, journal.calls, 2, "the changes of one call are one record")
	c.with("k", func(k Key) { assert.False(t, c.tx.Exists(k)) })
	c.with("k", func(k Key) { c.tx.Unwatch(w) })
	c.with("k", func(k Key) { c.tx.ZAdd(k, 0, []zset.Member{{Member: []byte("a"), Score: 1}}) })
	assert.Equal(t, 3, called)
}

// A dry run answers and changes nothing; the next decision of the Tx is not dry.
func TestDryRun(t *testing.T) {
	c := newCaller(t, Options{})
	rules := []limit.Window{{Limit: 1, Length: 1000}}
	for _, decide := range []func(k Key) (limit.Decision, error){
		func(k Key) (limit.Decision, error) { return c.tx.Slide(k, rules, 1, nil) },
		func(k Key) (limit.Decision, error) { return c.tx.Slide(k, rules, 1, []byte("id")) },
		func(k Key) (limit.Decision, error) { return c.tx.Token(k, tokenOfOne, 1) },
		func(k Key) (limit.Decision, error) {
			return c.tx.Fixed(k, limit.Fixed{Limit: 1, Window: limit.Every(1000)}, 1)
		},
	} {
		for _, dry := range []bool{true, true, false} {
			c.with("k", func(k Key) {
				var d limit.Decision
				var err error
				if dry {
					c.tx.DryRun(func() { d, err = decide(k) })
				} else {
					d, err = decide(k)
				}
				assert.NoError(t, err)
				assert.True(t, d.Allowed)
				assert.Equal(t, !dry, c.tx.find(0, k) != nil)
			})
		}
		c.with("k", func(k Key) { c.tx.Delete(k) })
	}
}

// A dry run ends with its function, even if that panics; a nested one does not end the outer one.
func TestDryRunEnds(t *testing.T) {
	c := newCaller(t, Options{})
	c.with("k", func(k Key) {
		assert.Panics(t, func() { c.tx.DryRun(func() { panic("fault") }) })
		assert.False(t, c.tx.dryRun)
		c.tx.DryRun(func() {
			c.tx.DryRun(func() {})
			assert.True(t, c.tx.dryRun)
		})
		assert.False(t, c.tx.dryRun)
	})
}

// NoTouch applies to the calls within it, not to what Watch.Then does at the end of the call. It
// also ends with a panic.
func TestThenIsNotPartOfNoTouch(t *testing.T) {
	c := newCaller(t, Options{})
	c.set("k", 0)
	noTouch := true
	w := &Watch{Then: func(tx *Tx) { noTouch = tx.noTouch }}
	c.with("k", func(k Key) { c.tx.Watch(w, k) })
	c.with("k", func(k Key) {
		c.tx.NoTouch(true, func() {
			assert.True(t, c.tx.noTouch)
			c.tx.Set(k, []byte("another value"), SetMode{})
			c.tx.NoTouch(false, func() { assert.False(t, c.tx.noTouch) })
			assert.True(t, c.tx.noTouch)
		})
		assert.Panics(t, func() { c.tx.NoTouch(true, func() { panic("of a handler") }) })
		assert.False(t, c.tx.noTouch)
	})
	assert.False(t, noTouch)
	c.with("k", func(k Key) { c.tx.Unwatch(w) })
}

// Then is called in the order in which a call creates the keys, and of those that it has not
// created, changes them.
func TestThenRunsInOrderOfCreation(t *testing.T) {
	c := newCaller(t, Options{})
	var order string
	names := []string{"a", "b", "c", "d"}
	var keys []Key
	for _, name := range names {
		k := c.e.Key([]byte(name))
		keys = append(keys, k)
		c.set(name, 0)
		w := &Watch{Then: func(*Tx) { order += name }}
		c.with(name, func(k Key) { c.tx.Watch(w, k) })
	}
	call := func(do func(a, b, c, d Key)) string {
		order = ""
		c.tx.Begin(0, 0, keys, true)
		do(keys[0], keys[1], keys[2], keys[3])
		c.tx.End()
		return order
	}
	create := func(k Key) { c.tx.Set(k, fmt.Append(nil, c.tx.Applied()), SetMode{}) }
	assert.Equal(t, "dbca", call(func(a, b, cc, d Key) {
		c.tx.Delete(a)
		create(d)
		c.tx.Delete(b)
		create(b)
		create(d)
		create(cc)
		create(a)
	}))
	assert.Equal(t, "ba", call(func(a, b, _, _ Key) {
		c.tx.Delete(a)
		c.tx.Delete(b)
		create(b)
		c.tx.Delete(b)
		create(a)
		create(b)
	}), "the first creation counts")
	assert.Equal(t, "db", call(func(_, b, _, d Key) { create(d); create(b) }))
}
