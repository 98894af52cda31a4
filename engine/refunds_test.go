package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/limit"
)

func (c *caller) refund(name string, n int64, id string) (back int64) {
	c.with(name, func(k Key) {
		var idBytes []byte
		if id != "" {
			idBytes = []byte(id)
		}
		var err error
		back, err = c.tx.Refund(k, n, idBytes)
		require.NoError(c.t, err)
	})
	return back
}

func TestRefundOfHits(t *testing.T) {
	c := newCaller(t, Options{})
	rules := []limit.Rule{{Limit: 10, Window: 1000}}
	assert.EqualValues(t, 0, c.refund("k", 1, ""), "of a missing key")
	c.slide("k", rules, 3, "")
	c.now++
	c.slide("k", rules, 2, "")
	assert.EqualValues(t, 3, c.refund("k", 3, ""), "the newest first")
	assert.Equal(t, "log until 1767225601001: 1767225600000-0@1767225600000 1767225600000-1@1767225600000", c.content("k"), "the deadline stays")
	assert.EqualValues(t, 2, c.refund("k", limit.MaxCount, ""), "no more than were used")
	assert.Equal(t, "nothing", c.content("k"))
}

func TestRefundOfHitsByID(t *testing.T) {
	c := newCaller(t, Options{})
	rules := []limit.Rule{{Limit: 10, Window: 1000}}
	c.slide("k", rules, 1, "a:2")
	c.now++
	c.slide("k", rules, 3, "a") // a, a:3, a:4
	c.slide("k", rules, 1, "b")
	assert.EqualValues(t, 0, c.refund("k", 1, "c"))
	assert.EqualValues(t, 2, c.refund("k", 2, "a"))
	assert.Equal(t, "log until 1767225601001: a:2@1767225600000 a@1767225600001 b@1767225600001", c.content("k"))
	d := c.slide("k", rules, 3, "a")
	assert.EqualValues(t, 7, d.Remaining, "what was given back in part is still known")
	assert.EqualValues(t, 1, c.refund("k", 5, "a"))
	assert.EqualValues(t, 0, c.refund("k", 5, "a"))
	assert.EqualValues(t, 1, c.refund("k", 5, "b"))
	assert.EqualValues(t, 1, c.refund("k", 5, "a:2"))
	assert.Equal(t, "nothing", c.content("k"))
}

func TestRefundOfTokens(t *testing.T) {
	c := newCaller(t, Options{})
	bucket := limit.Bucket{Capacity: 5, Refill: 1, Period: 1000}
	c.token("t", bucket, 4)
	c.now += 500
	before := c.content("t")
	assert.EqualValues(t, 3, c.refund("t", 3, ""))
	assert.Equal(t, "1767225604000 {1 0 1767225600000}", c.content("t"), "after "+before)
	d := c.token("t", bucket, 0)
	assert.EqualValues(t, 4, d.Remaining)
	assert.EqualValues(t, 500, d.ResetAfter, "half of it has flowed back already")
	assert.EqualValues(t, 1, c.refund("t", 3, ""))
	assert.Equal(t, "nothing", c.content("t"), "a full bucket is no key")
}

func TestRefundOfAFixedWindow(t *testing.T) {
	c := newCaller(t, Options{})
	minute := limit.Fixed{Limit: 5, Window: limit.Every(60000)}
	c.fixed("f", minute, 4)
	assert.EqualValues(t, 3, c.refund("f", 3, ""))
	assert.EqualValues(t, 4, c.fixed("f", minute, 0).Remaining)
	c.now += 60000
	assert.NotEqual(t, "nothing", c.content("f"), "a key is there at its deadline")
	assert.EqualValues(t, 0, c.refund("f", 1, ""), "but its window is over")
	c.fixed("f", minute, 2)
	assert.EqualValues(t, 2, c.refund("f", 3, ""))
	assert.Equal(t, "nothing", c.content("f"))
}

func TestRefundErrors(t *testing.T) {
	c := newCaller(t, Options{})
	c.token("t", limit.Bucket{Capacity: 5, Refill: 1, Period: 1000}, 1)
	c.fixed("f", limit.Fixed{Limit: 5, Window: limit.Every(1000)}, 1)
	c.with("s", func(k Key) { c.tx.Set(k, []byte("text"), SetMode{}) })
	for key, want := range map[string]error{"t": ErrNoIDs, "f": ErrNoIDs, "s": ErrWrongType} {
		c.with(key, func(k Key) {
			_, err := c.tx.Refund(k, 1, []byte("id"))
			assert.Equal(t, want, err, key)
		})
	}
}
