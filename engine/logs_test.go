package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/hits"
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

// A log that is a record answers as the sorted set with its hits does, whether it is loaded or not.
func TestRecordsAnswerAsSets(t *testing.T) {
	c, r := newCaller(t, Options{}), rand.New(rand.NewPCG(1, 2))
	window := []limit.Window{{Limit: 1000, Length: 100_000}}
	records := 0
	for i := range 300 {
		name := fmt.Sprint("k", i%7)
		c.now += r.Int64N(5)
		c.slide(name, window, 1+r.Int64N(3), "")
		c.with(name, func(k Key) {
			o, isRecord := c.tx.find(0, k).(*object.Log)
			if !isRecord {
				return
			}
			records++
			var few, other zset.Borrowed
			set := o.Load(nil, &other)
			var log hits.Log
			log.Load(o, &few)
			require.Equal(t, set.Len(), log.Len())
			for _, at := range r.Perm(int(c.now - o.First() + 10)) {
				time := float64(o.First()+int64(at)-5) + float64(r.IntN(2))/2
				require.Equal(t, set.FirstAfter(time), log.After(time), "%v", time)
			}
			for rank := range set.Len() {
				log.Load(o, &few) // nothing is loaded for another rank
				require.Equal(t, set.ScoreAt(rank), log.At(rank))
			}
			for at := o.Newest(); at < o.Newest()+2; at++ {
				require.Equal(t, set.NumberAfter(at) > 0, log.NamesAt(at) != nil)
			}
		})
	}
	assert.Greater(t, records, 100)
}

// A key whose deadline moves back and forth is deleted after the last of them.
func TestDeadlinesThatMoveAreSwept(t *testing.T) {
	c := newCaller(t, Options{})
	s := c.e.NewSweeper()
	swept := func(now int64) (deleted int) {
		for end := s.Rounds() + 2; s.Rounds() < end; {
			deleted += s.Step(now)
		}
		return deleted
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		at := int64(0)
		for range 1 + r.IntN(5) {
			at = c.now + 1 + r.Int64N(1000)*r.Int64N(2)*r.Int64N(1000)
			c.with("k", func(k Key) {
				if !c.tx.Exists(k) {
					c.tx.Set(k, []byte("v"), SetMode{})
				}
				require.True(t, c.tx.Expire(k, at, 0))
			})
			if r.IntN(3) == 0 {
				c.now += r.Int64N(at - c.now)
				require.Zero(t, swept(c.now))
			}
		}
		require.Zero(t, swept(at))
		require.Equal(t, 1, swept(at+1))
		c.now = at + 1
	}
}
