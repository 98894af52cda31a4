package engine

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/zset"
)

func (c *caller) Refund(name string, n int64, id string) (back int64) {
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

func TestRefundHits(t *testing.T) {
	c := newCaller(t, Options{})
	rules := []limit.Window{{Limit: 10, Length: 1000}}
	assert.EqualValues(t, 0, c.Refund("k", 1, ""), "a missing key")
	c.slide("k", rules, 3, "")
	c.now++
	c.slide("k", rules, 2, "")
	assert.EqualValues(t, 3, c.Refund("k", 3, ""), "the newest first")
	assert.Equal(
		t,
		"log until 1767225601001: 1767225600000-0@1767225600000 1767225600000-1@1767225600000",
		c.Content("k"),
		"the deadline stays",
	)
	assert.EqualValues(t, 2, c.Refund("k", limit.MaxCount, ""), "no more than were used")
	assert.Equal(t, "nothing", c.Content("k"))
}

func TestRefundHitsByID(t *testing.T) {
	c := newCaller(t, Options{})
	rules := []limit.Window{{Limit: 10, Length: 1000}}
	c.slide("k", rules, 1, "a:2") // a:2:1
	c.now++
	c.slide("k", rules, 3, "a") // a, a:2, a:3
	c.slide("k", rules, 1, "b")
	assert.EqualValues(t, 0, c.Refund("k", 1, "c"))
	assert.EqualValues(t, 2, c.Refund("k", 2, "a"))
	assert.Equal(t, "log until 1767225601001: a:2:1@1767225600000 a@1767225600001 b@1767225600001", c.Content("k"))
	d := c.slide("k", rules, 3, "a")
	assert.EqualValues(t, 7, d.Remaining, "the id is kept after a partial refund")
	assert.EqualValues(t, 1, c.Refund("k", 5, "a"))
	assert.EqualValues(t, 0, c.Refund("k", 5, "a"))
	assert.EqualValues(t, 1, c.Refund("k", 5, "b"))
	assert.EqualValues(t, 1, c.Refund("k", 5, "a:2"))
	assert.Equal(t, "nothing", c.Content("k"))
}

// A call's hits are found by id after its newest one has been refunded without an id.
func TestRefundByIDAfterNewest(t *testing.T) {
	c := newCaller(t, Options{})
	rules := []limit.Window{{Limit: 100, Length: 3600_000}}
	c.slide("k", rules, 12, "r")
	assert.EqualValues(t, 1, c.Refund("k", 1, ""))
	assert.EqualValues(t, 5, c.Refund("k", 5, "r"))
	assert.True(t, c.slide("k", rules, 12, "r").Free, "the id is kept after a partial refund")
	assert.EqualValues(t, 6, c.Refund("k", 100, "r"))
	assert.Equal(t, "nothing", c.Content("k"))
}

// The names of an id's hits are never taken for those of another id, nor for those of hits
// without an id.
func TestIDsDoNotCollide(t *testing.T) {
	rules := []limit.Window{{Limit: 100, Length: 1000}}
	ids := []string{
		"a",
		"a:1",
		"a:2",
		"a:2:1",
		"a:1:1",
		"a:02",
		":2",
		"2",
		"a:",
		"a:b:2",
		"a:b",
		"-1",
		"a-1",
		"1767225600000-0",
		"1767225600000-0:1",
		"0-0:2",
	}
	for i, first := range ids {
		for _, second := range slices.Concat(ids[:i], ids[i+1:]) {
			c := newCaller(t, Options{})
			c.slide("k", rules, 3, "")
			assert.False(t, c.slide("k", rules, 3, first).Free, "%s", first)
			d := c.slide("k", rules, 3, second)
			assert.False(t, d.Free, "%s after %s", second, first)
			assert.EqualValues(t, 91, d.Remaining, "%s after %s", second, first)
			assert.True(t, c.slide("k", rules, 1, first).Free, "%s", first)
			assert.EqualValues(t, 3, c.Refund("k", 100, second))
			assert.EqualValues(t, 3, c.Refund("k", 100, first), "%s but not %s", first, second)
		}
	}
}

// Compares refunds with a list of the names of each id: a refund by id removes hits of its calls
// only, as many as asked for, whatever was refunded before; one without an id removes the newest
// hits. In the runs with fixed seeds the log also expires between two calls.
func TestRefundHitsMatchesModel(t *testing.T) {
	for _, seed := range []uint64{2167910261556739064, 9211349201012479659, rand.Uint64()} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			refundHitsMatchesModel(t, rand.New(rand.NewPCG(seed, 0)))
		})
	}
}

func refundHitsMatchesModel(t *testing.T, r *rand.Rand) {
	for range histories(60) {
		c, rules := newCaller(t, Options{}), []limit.Window{{Limit: 60, Length: 40}}
		// the id of each name ever given, and the names in the log
		owners, names := map[string]string{}, map[string]float64{}
		expireAt := int64(math.MaxInt64)
		ids := []string{"", "a", "a:2", "a:2:1", "b", "b10", fmt.Sprint(c.now, "-0"), fmt.Sprint(c.now+3, "-1")}
		for range 120 {
			c.now += r.Int64N(4) / 3 * r.Int64N(9)
			if c.now > expireAt {
				names, expireAt = map[string]float64{}, math.MaxInt64
			}
			require.Equal(t, names, c.members("k"), "before the call")
			id, n := ids[r.IntN(len(ids))], 1+r.Int64N(14)
			owned := int64(0)
			for name := range names {
				if owners[name] == id {
					owned++
				}
			}
			before := maps.Clone(names)
			if r.IntN(2) == 0 {
				known := id != "" && slices.ContainsFunc(slices.Collect(maps.Keys(before)), func(name string) bool {
					return owners[name] == id && before[name] > float64(c.now-40)
				})
				d := c.slide("k", rules, n, id)
				require.Equal(t, known, d.Allowed && d.Free, "%q of %v", id, before)
				if d.Allowed && !d.Free {
					expireAt = c.now + 40
				}
				names = c.members("k")
				for name, at := range names {
					if was, there := before[name]; !there || was != at {
						owner, given := owners[name]
						if given && (id == "" || owner != id) {
							require.FailNow(t, "a name was given to two ids", "%s belongs to %q", name, owner)
						}
						owners[name] = id
						n--
					}
				}
				require.True(t, !d.Allowed || d.Free || n == 0, "%d hits are missing", n)
				continue
			}
			back := c.Refund("k", n, id)
			names = c.members("k")
			oldest := math.Inf(1)
			for name, at := range before {
				if _, there := names[name]; !there {
					if id != "" && owners[name] != id {
						require.FailNow(t, "a hit of another id was refunded", "%s is not of %q", name, id)
					}
					oldest = min(oldest, at)
				}
			}
			require.EqualValues(t, len(before)-len(names), back)
			if id != "" {
				require.Equal(t, min(n, owned), back, "of %q in %v", id, before)
				continue
			}
			require.Equal(t, min(n, int64(len(before))), back)
			newest := slices.Max(append(slices.Collect(maps.Values(names)), 0))
			require.LessOrEqual(t, newest, oldest, "a hit is left that is newer than one that was refunded")
		}
	}
}

// members returns the members of a log and their times.
func (c *caller) members(name string) (members map[string]float64) {
	c.with(name, func(k Key) { members = c.logOf(k) })
	return members
}

// logOf is members within a call.
func (c *caller) logOf(k Key) map[string]float64 {
	members := map[string]float64{}
	if z, ok := c.tx.lookup(k).(*object.ZSet); ok {
		for member, score := range z.Set.Ascend(0, z.Set.Len()) {
			members[string(member)] = score
		}
	}
	return members
}

// A name is not used again in the millisecond in which it was refunded: not in the same log, nor in
// one that is renamed or copied to another shard, nor in one that is restored from the effects.
func TestNamesOfHitsAreUnique(t *testing.T) {
	rules := []limit.Window{{Limit: 100, Length: 1000}}
	for _, move := range []string{"stays", "renamed", "copied", "replayed"} {
		for i := range 20 {
			log := new(recorder)
			c := newCaller(t, Options{Journal: log})
			name := "k"
			c.slide(name, rules, 3, "")
			given := slices.Collect(maps.Keys(c.members(name)))
			c.Refund(name, 2, "")
			switch other := fmt.Sprint("other", i); move {
			case "renamed", "copied":
				from, to := c.e.Key([]byte(name)), c.e.Key([]byte(other))
				c.tx.Begin(c.now, 0, []Key{from, to}, true)
				if move == "renamed" {
					require.NoError(t, c.tx.Rename(from, to))
				} else {
					_, err := c.tx.Copy(from, to, 0, false)
					require.NoError(t, err)
				}
				c.tx.End()
				name = other
			case "replayed":
				c = &caller{t: t, e: log.replayed(Options{}), now: c.now}
				c.tx = c.e.NewTx()
			}
			kept := c.members(name)
			require.Len(t, kept, 1)
			c.slide(name, rules, 3, "")
			for again := range c.members(name) {
				_, old := kept[again]
				require.False(t, !old && slices.Contains(given, again), "%s: %s was given before", move, again)
			}
		}
	}
}

// A new hit of a key has no name that any hit under this key has had, whatever became of that.
func TestNewHitsHaveNewNames(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	for range walks {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		c := newCaller(t, Options{Databases: 2, Shards: 2, Seed: [2]uint64{seed, 1}})
		seen := map[string]bool{}
		for step := range 300 {
			db, name, other := r.IntN(2), names[r.IntN(4)], names[r.IntN(4)]
			from, to := c.e.Key([]byte(name)), c.e.Key([]byte(other))
			c.tx.BeginAll(c.now, db, true)
			before := c.logOf(from)
			added := false
			switch o, _ := c.tx.lookup(from).(*object.ZSet); {
			case r.IntN(2) == 0:
				added = true
				_, err := c.tx.Slide(from, []limit.Window{{Limit: 1e6, Length: 5}}, 1+r.Int64N(3), nil)
				require.NoError(t, err)
			case o == nil:
			case r.IntN(2) == 0:
				_, err := c.tx.Refund(from, 1+r.Int64N(3), nil)
				require.NoError(t, err)
			case r.IntN(4) == 0: // the name of a hit that is one of the last possible
				last := fmt.Sprintf("%d-%d", c.now, zset.MaxSeq-uint64(r.IntN(3)))
				_, _, err := c.tx.ZAdd(from, 0, []zset.Member{{Member: []byte(last), Score: float64(c.now)}})
				require.NoError(t, err)
			case r.IntN(6) == 0:
				require.NoError(t, c.tx.Rename(from, to))
			case r.IntN(5) == 0:
				_, err := c.tx.Copy(from, to, r.IntN(2), true)
				require.True(t, err == nil || name == other, err)
			case r.IntN(4) == 0:
				_, _ = c.tx.Move(from, 1-db)
			case r.IntN(3) == 0:
				c.tx.Delete(from)
			case r.IntN(2) == 0:
				c.tx.Swap(0, 1)
			case r.IntN(2) == 0:
				c.tx.Flush()
			default:
				member, _ := o.Set.At(r.IntN(o.Set.Len()))
				_, _ = c.tx.ZRem(from, [][]byte{member})
			}
			if added {
				for hit := range c.logOf(from) {
					_, had := before[hit]
					require.False(t, !had && seen[fmt.Sprint(db, name, hit)],
						"seed %d, step %d: %s of %s again", seed, step, hit, name)
				}
			}
			for db := range 2 {
				c.tx.Next(db, true)
				for _, name := range names {
					for hit := range c.logOf(c.e.Key([]byte(name))) {
						if number, _ := strconv.ParseUint(strings.Split(hit, "-")[1], 10, 64); number >= zset.MaxSeq-3 {
							continue // a client's
						}
						seen[fmt.Sprint(db, name, hit)] = true
					}
				}
			}
			c.tx.End()
			c.now += int64(r.IntN(8) / 7)
		}
	}
}

func TestRefundTokens(t *testing.T) {
	c := newCaller(t, Options{})
	bucket := limit.Bucket{Capacity: 5, Refill: 1, Period: 1000}
	c.token("t", bucket, 4)
	c.now += 500
	before := c.Content("t")
	assert.EqualValues(t, 3, c.Refund("t", 3, ""))
	assert.Equal(t, "1767225604000 {1 0 1767225600000 0}", c.Content("t"), "after "+before)
	d := c.token("t", bucket, 0)
	assert.EqualValues(t, 4, d.Remaining)
	assert.EqualValues(t, 500, d.ResetAfter, "half of it has been refilled already")
	assert.EqualValues(t, 1, c.Refund("t", 3, ""))
	assert.Equal(t, "nothing", c.Content("t"), "a full bucket's key is deleted")
}

func TestRefundFixedWindow(t *testing.T) {
	c := newCaller(t, Options{})
	minute := limit.Fixed{Limit: 5, Window: limit.Every(60000)}
	c.fixed("f", minute, 4)
	assert.EqualValues(t, 3, c.Refund("f", 3, ""))
	assert.EqualValues(t, 4, c.fixed("f", minute, 0).Remaining)
	c.now += 60000
	assert.NotEqual(t, "nothing", c.Content("f"), "a key exists at its deadline")
	assert.EqualValues(t, 0, c.Refund("f", 1, ""), "its window is over")
	c.fixed("f", minute, 2)
	assert.EqualValues(t, 2, c.Refund("f", 3, ""))
	assert.Equal(t, "nothing", c.Content("f"))
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
