package engine

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/zset"
)

const (
	moveHour = int64(3_600_000)
	moveYear = 365 * 24 * moveHour
)

var (
	minutely   = []limit.Window{{Limit: 20, Length: 60_000}}
	slow       = limit.Bucket{Capacity: 9, Refill: 2, Period: 7000}
	hourly     = limit.Fixed{Limit: 9, Window: limit.Every(moveHour)}
	oneASecond = limit.Bucket{Capacity: 1, Refill: 1, Period: 1000}
)

// peeks returns the answers of all limiters that use uses.
func (c *caller) peeks(keys int) (list []string) {
	rules := []limit.Window{{Limit: 20, Length: 60_000}, {Limit: 60, Length: moveHour}}
	for i := range keys {
		list = append(list,
			fmt.Sprint("slide", i, c.slide(fmt.Sprint("slide", i), rules, 0, "")),
			fmt.Sprint("token", i, c.token(fmt.Sprint("token", i), slow, 0)),
			fmt.Sprint("fixed", i, c.fixed(fmt.Sprint("fixed", i), hourly, 0).Remaining),
			fmt.Sprint("ids", i, c.slide(fmt.Sprint("ids", i), rules, 1, "first")),
		)
		c.with(fmt.Sprint("lease", i), func(k Key) {
			for _, id := range []string{"a", "b", "c"} {
				d, err := c.tx.Lease(k, limit.Lease{Limit: 9, TTL: 1000}, []byte(id))
				require.NoError(c.t, err)
				list = append(list, fmt.Sprint("lease", i, id, d.Remaining))
			}
		})
		c.with(fmt.Sprint("plain", i), func(k Key) {
			at, ok := c.tx.Deadline(k)
			list = append(list, fmt.Sprint("plain", i, at-c.now, ok))
		})
	}
	return list
}

// use makes random calls of limiters, and moves the clock on.
func (c *caller) use(r *rand.Rand, keys, calls int) {
	rules := []limit.Window{{Limit: 20, Length: 60_000}, {Limit: 60, Length: moveHour}}
	for range calls {
		c.now += r.Int64N(2000)
		key := func(kind string) string { return fmt.Sprint(kind, r.IntN(keys)) }
		c.slide(key("slide"), rules, 1+r.Int64N(3), "")
		c.slide(key("ids"), rules, 1, []string{"first", "second", "third"}[r.IntN(3)])
		c.token(key("token"), slow, 1+r.Int64N(3))
		c.fixed(key("fixed"), hourly, 1)
		c.with(key("lease"), func(k Key) {
			c.tx.Lease(k, limit.Lease{Limit: 9, TTL: 1000 + r.Int64N(90_000)}, []byte{byte('a' + r.IntN(3))})
		})
		c.with(key("plain"), func(k Key) { c.tx.Set(k, nil, SetMode{ExpireAt: c.now + 1000 + r.Int64N(1_000_000)}) })
	}
}

// TestMoveBackKeepsUsage uses limiters on a clock that is ahead, and compares their
// answers before and after MoveBack.
func TestMoveBackKeepsUsage(t *testing.T) {
	for _, ahead := range []int64{moveHour * 24, 10 * moveYear} {
		for seed := range uint64(10) {
			r := rand.New(rand.NewPCG(seed, uint64(ahead)))
			c := newCaller(t, Options{Shards: 1})
			c.now += ahead
			c.use(r, 3, 150)
			latest, other := c.now, newCaller(t, Options{Shards: 1})
			for s := c.e.Snapshot(func() {}); s.Step(func(f []effect.Effect) {
				require.NoError(t,
					other.e.Apply(latest, f))
			}); {
			}
			other.now = latest
			want := other.peeks(3)

			c.now = latest - ahead
			require.Positive(t, c.e.MoveBack(latest, c.now))
			require.Equal(t, want, c.peeks(3), "seed %d", seed)
			c.slide("slide0", []limit.Window{{Limit: 10_000, Length: moveHour}}, 1, "")
			c.now += 2 * moveHour
			for i := range 3 {
				assert.EqualValues(t, 20, c.slide(fmt.Sprint("slide", i), minutely, 0, "").Remaining)
				assert.EqualValues(t, 9, c.token(fmt.Sprint("token", i), slow, 0).Remaining)
			}
		}
	}
}

// Times from before the clock was wrong stay as they are.
func TestMoveBackKeepsEarlierTimes(t *testing.T) {
	c := newCaller(t, Options{Shards: 1})
	r := rand.New(rand.NewPCG(1, 2))
	c.use(r, 3, 100)
	present := c.now
	c.peeks(3) // takes leases
	want := c.peeks(3)
	c.now += 10 * moveYear
	c.token("wrong", oneASecond, 1)
	assert.Equal(t, 1, c.e.MoveBack(c.now, present))
	c.now = present
	assert.Equal(t, want, c.peeks(3))
	assert.Equal(t, limit.Decision{Limit: 1, RetryAfter: 1000, ResetAfter: 1000}, c.token("wrong", oneASecond, 1))
}

// Hits that get the same name as others all count, and a client's scores are not taken for
// times.
func TestMoveBackMovesHitsNotScores(t *testing.T) {
	const ahead = 10 * moveYear
	c := newCaller(t, Options{Shards: 1})
	rules := []limit.Window{{Limit: 9, Length: moveHour}}
	c.slide("log", rules, 2, "")
	c.with("scores", func(k Key) {
		c.tx.ZAdd(k, 0, []zset.Member{{Member: []byte("a"), Score: 9e12}, {Member: []byte("b"), Score: 1.5}})
	})
	c.slide("persisted", rules, 1, "")
	c.now += ahead
	apply := func(f effect.Effect) { require.NoError(t, c.e.Apply(c.now, []effect.Effect{f})) }
	log, persisted := Key{Name: []byte("log")}, Key{Name: []byte("persisted")}
	apply(effect.Effect{Kind: effect.AddHits, Key: log, Hits: effect.Hits{At: c.now, N: 3}, ExpireAt: c.now + moveHour})
	apply(effect.Effect{Kind: effect.AddHits, Key: persisted, Hits: effect.Hits{At: c.now, N: 1}})
	assert.Equal(t, 2, c.e.MoveBack(c.now, c.now-ahead))
	c.now -= ahead
	at := c.now
	want := fmt.Sprintf("log until %d:", at+moveHour)
	for i := range 5 {
		want += fmt.Sprintf(" %d-%d@%[1]d", at, i)
	}
	assert.Equal(t, want, c.Content("log"))
	assert.Equal(t, fmt.Sprintf("log until 0: %d-0@%[1]d %[1]d-1@%[1]d", at), c.Content("persisted"))
	assert.EqualValues(t, 3, c.slide("log", rules, 1, "").Remaining)
	assert.Equal(t, "log until 0: b@1 a@9000000000000", c.Content("scores"))
}
