package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/zset"
)

// form returns the type of Go that a key's object has.
func (c *caller) form(name string) (form string) {
	c.with(name, func(k Key) { form = fmt.Sprintf("%T", c.tx.find(0, k)) })
	return form
}

// A log of few hits is a record, until it has many or a call needs its members.
func TestLogsOfFewHitsAreRecords(t *testing.T) {
	const record, set = "*object.Log", "*object.ZSet"
	c := newCaller(t, Options{})
	window := []limit.Window{{Limit: 1000, Length: 1000}}
	for range 40 {
		c.now += 9
		require.True(t, c.slide("k", window, 1, "").Allowed)
		require.Equal(t, record, c.form("k"))
	}
	for range 100 {
		c.now += 9
		c.slide("k", window, 1, "")
	}
	assert.Equal(t, set, c.form("k"))
	c.now += 999
	c.slide("k", window, 900, "")
	assert.Equal(t, record, c.form("k"), "a large cost is one entry")
	c.with("k", func(k Key) {
		z, err := c.tx.ZSet(k)
		require.NoError(t, err)
		assert.Equal(t, 901, z.Len())
		_, _, err = c.tx.ZAdd(k, 0, []zset.Member{{Member: []byte("x"), Score: float64(c.now)}})
		require.NoError(t, err)
	})
	assert.Equal(t, set, c.form("k"))
	c.slide("k", window, 1, "")
	assert.Equal(t, set, c.form("k"), "it has a member that is no hit")
	c.now += 1000
	c.slide("k", window, 1, "")
	assert.Equal(t, record, c.form("k"))
	requireSound(t, c.e)
}

// Random calls on short logs do what they do on the sorted sets that the logs are for calls, and
// are replayed, copied and saved with all members.
func TestShortLogsAreSortedSets(t *testing.T) {
	for seed := range uint64(histories(8)) {
		r := rand.New(rand.NewPCG(seed, 1))
		log := new(recorder)
		c, plain := newCaller(t, Options{Journal: log}), newCaller(t, Options{})
		plain.now = c.now
		name := func() string { return fmt.Sprint("key", r.IntN(3)) }
		for range 150 {
			by := r.Int64N(40)
			c.now, plain.now = c.now+by, plain.now+by
			key, to, op, cost, n := name(), name(), r.IntN(12), 1+r.Int64N(4), r.IntN(100)
			window := []limit.Window{{Limit: 1 + r.Int64N(60), Length: 1 + r.Int64N(900)}}
			do := func(c *caller) (result string) {
				switch op {
				case 0:
					c.with(key, func(k Key) {
						at := c.now - int64(n)
						hit := zset.Member{Member: fmt.Appendf(nil, "%d-%d", at, n%3), Score: float64(at)}
						added, changed, err := c.tx.ZAdd(k, 0, []zset.Member{hit})
						result = fmt.Sprint(added, changed, err)
					})
				case 1:
					return fmt.Sprint(c.Refund(key, cost, ""))
				case 2:
					d := c.slide(key, window, cost, fmt.Sprint("id", n%7))
					return fmt.Sprint(d)
				case 3:
					two := []Key{c.e.Key([]byte(key)), c.e.Key([]byte(to))}
					c.tx.Begin(c.now, 0, two, true)
					defer c.tx.End()
					copied, err := c.tx.Copy(two[0], two[1], 0, true)
					return fmt.Sprint(copied, err)
				case 4:
					return fmt.Sprint(c.members(key))
				}
				return fmt.Sprint(c.slide(key, window, cost, ""))
			}
			// the second engine has sorted sets only: each key is read before it is used
			plain.with(key, func(k Key) { plain.tx.lookup(k) })
			require.Equal(t, do(plain), do(c), "seed %d", seed)
			requireSound(t, c.e)
		}
		want := dump(plain.e)
		require.Equal(t, want, dump(c.e))
		require.Equal(t, want, dump(log.replayed(Options{})))
		require.Equal(t, living(c.e, c.now), living(throughASnapshot(t, c.e), c.now))
		require.Equal(t, digestOf(plain.e, c.now), digestOf(c.e, c.now))
	}
}

// A log that is loaded from a snapshot is a record again, and one that is moved keeps its hits.
func TestShortLogsAreLoadedAsRecords(t *testing.T) {
	c := newCaller(t, Options{})
	for range 5 {
		c.now += 7
		c.slide("k", []limit.Window{{Limit: 100, Length: 100_000}}, 3, "")
	}
	loaded := throughASnapshot(t, c.e)
	for o := range objects(loaded, 0) {
		assert.IsType(t, &object.Log{}, o)
	}
	assert.Equal(t, c.e.Weight(), loaded.Weight())
	c.e.MoveBack(c.now, c.now-20)
	requireSound(t, c.e)
	assert.Len(t, c.members("k"), 15)
}
