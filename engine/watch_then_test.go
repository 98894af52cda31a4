package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine/limit"
)

// Then is called once for each call that changes the key, after all that the call does, in the key's database; what it changes is part of
// the call, and it is called again for that.
func TestThen(t *testing.T) {
	var journal recorder
	c := newCaller(t, Options{Journal: &journal})
	var called int
	w := &Watch{}
	w.Then = func(tx *Tx) {
		called++
		_, err := tx.ZPop([]Key{c.e.Key([]byte("k"))}, 1, false, func(Key, ZMembers) {})
		assert.NoError(t, err)
		tx.Afterwards(func(p Position) { assert.EqualValues(t, len(journal.calls), p) })
	}
	c.with("k", func(k Key) { c.tx.Watch(w, k) })
	c.with("other", func(k Key) { c.tx.ZAdd(k, 0, []ZMember{{[]byte("a"), 1}}) })
	assert.Zero(t, called)
	c.with("k", func(k Key) { c.tx.ZAdd(k, 0, []ZMember{{[]byte("a"), 1}, {[]byte("b"), 2}}) })
	assert.Equal(t, 3, called, "for the call, and for each of the members that it popped itself")
	assert.Len(t, journal.calls, 2, "the changes of one call are one record")
	c.with("k", func(k Key) { assert.False(t, c.tx.Exists(k)) })
	c.with("k", func(k Key) { c.tx.Unwatch(w) })
	c.with("k", func(k Key) { c.tx.ZAdd(k, 0, []ZMember{{[]byte("a"), 1}}) })
	assert.Equal(t, 3, called)
}

// What is rehearsed is told and has not happened; the next call of the Tx is no rehearsal.
func TestRehearse(t *testing.T) {
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
		for _, rehearse := range []bool{true, true, false} {
			c.with("k", func(k Key) {
				c.tx.Rehearse = rehearse
				d, err := decide(k)
				assert.NoError(t, err)
				assert.True(t, d.Allowed)
				assert.Equal(t, !rehearse, c.tx.find(0, k) != nil)
			})
		}
		c.with("k", func(k Key) { c.tx.Delete(k) })
	}
}
