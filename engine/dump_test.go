package engine

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/eviction"
	"rlserver/engine/object"
	"rlserver/internal/rdb"
	"rlserver/zset"
)

// decoded returns the value that DUMP writes.
func decoded(t testing.TB, c object.Content) rdb.Value {
	v, err := decode(c)
	require.NoError(t, err)
	return v
}

func decode(c object.Content) (rdb.Value, error) {
	p, err := rdb.Check(rdb.AppendFooter(c.Append(nil)), math.MaxInt64)
	if err != nil {
		return rdb.Value{}, err
	}
	return p.Value()
}

// Restore stores the content, and the content of a key does not change when the key does.
func TestRestoreStoresContent(t *testing.T) {
	log := new(recorder)
	c := newCaller(t, Options{Journal: log})
	var z object.Content
	c.with("z", func(k Key) {
		c.tx.ZAdd(k, 0, []zset.Member{{Member: []byte("a"), Score: 1}, {Member: []byte("b"), Score: 2}})
		content, ok := c.tx.Content(k)
		require.True(t, ok)
		require.True(t, content.Lasting)
		z = content
		c.tx.ZAdd(k, 0, []zset.Member{{Member: []byte("a"), Score: 9}, {Member: []byte("c"), Score: 0}})
	})
	want := []rdb.Member{{Name: []byte("a"), Score: 1}, {Name: []byte("b"), Score: 2}}
	assert.Equal(t, want, decoded(t, z).Members)

	log.calls = nil
	c.with("z", func(k Key) {
		require.NoError(
			t,
			c.tx.Restore(
				k,
				&object.Restored{
					Type:     object.TypeToken,
					Numbers:  [4]int64{3, 0, epoch},
					ExpireAt: epoch + 500,
					Idle:     90,
					Uses:     -1,
				},
			),
		)
		content, _ := c.tx.Content(k)
		v := decoded(t, content)
		assert.EqualValues(t, object.TypeToken, v.Kind)
		assert.Equal(t, int64(3), v.Numbers[0])
	})
	kinds := make([]effect.Kind, 0, 2)
	for _, f := range log.effects() {
		kinds = append(kinds, f.Kind)
	}
	assert.Equal(t, []effect.Kind{effect.Delete, effect.Bucket}, kinds)

	c.with("z", func(k Key) {
		require.NoError(
			t,
			c.tx.Restore(
				k,
				&object.Restored{Type: object.TypeString, Text: []byte("x"), ExpireAt: epoch, Idle: -1, Uses: -1},
			),
		)
		assert.False(t, c.tx.Exists(k), "it has expired")
		require.NoError(
			t,
			c.tx.Restore(k, &object.Restored{Type: object.TypeString, Text: []byte("x"), Idle: 90, Uses: 200}),
		)
		idle, _ := c.tx.Idle(k)
		assert.Equal(t, int64(90), idle)
		c.e.SetEviction(eviction.AllKeysLFU, 5)
		require.NoError(
			t,
			c.tx.Restore(k, &object.Restored{Type: object.TypeString, Text: []byte("x"), Idle: 90, Uses: 200}),
		)
		uses, _ := c.tx.Frequency(k)
		assert.Equal(t, int64(200), uses)
	})
	requireSound(t, c.e)
}

func TestRestoreChecksMemoryAndContent(t *testing.T) {
	c := newCaller(t, Options{})
	c.e.SetBudget(1 << 20)
	c.with("k", func(k Key) {
		c.tx.Set(k, []byte("old"), SetMode{})
		assert.Equal(t, ErrOutOfMemory, c.tx.Restore(k, &object.Restored{Type: object.TypeString, Weight: 2 << 20}))
		assert.True(t, c.tx.Exists(k), "a call with an error changes nothing")
	})
	for _, r := range []object.Restored{
		{}, {Type: object.TypeHash}, {Type: object.TypeZSet}, {Type: object.TypeToken, Numbers: [4]int64{-1}},
		{Type: object.TypeToken, Numbers: [4]int64{3: 1 << 40}},
		{Type: object.TypeFixed, Numbers: [4]int64{-1}}, {Type: "other"},
		{Type: object.TypeToken, Ban: []byte{}}, {Type: object.TypeToken, Ban: make([]byte, 4)},
		{Type: object.TypeZSet, Ban: make([]byte, 4)},
	} {
		assert.False(t, r.Valid(), "%+v", r)
	}
}
