package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/rule"
	"rlserver/zset"
)

// epoch is where the tests' clock begins: 2026-01-01 00:00:00 UTC, Unix ms.
const epoch = 1767225600000

// caller makes calls of one key each on an engine, at a time that the test sets.
type caller struct {
	t   testing.TB
	e   *Engine
	tx  *Tx
	now int64
}

// histories returns how many random histories a test checks: n, or a quarter of them with -short.
func histories(n int) int {
	if testing.Short() {
		return (n + 3) / 4
	}
	return n
}

func newCaller(t testing.TB, o Options) *caller {
	e := New(o)
	return &caller{t: t, e: e, tx: e.NewTx(), now: epoch}
}

func (c *caller) with(name string, do func(k Key)) {
	k := c.e.Key([]byte(name))
	c.tx.Begin(c.now, 0, []Key{k}, true)
	defer c.tx.End()
	do(k)
}

func (c *caller) slide(name string, rules []limit.Window, cost int64, id string) (d limit.Decision) {
	c.with(name, func(k Key) {
		var idBytes []byte
		if id != "" {
			idBytes = []byte(id)
		}
		var err error
		d, err = c.tx.Slide(k, rules, cost, idBytes)
		require.NoError(c.t, err)
	})
	return d
}

func (c *caller) token(name string, b limit.Bucket, cost int64) (d limit.Decision) {
	c.with(name, func(k Key) {
		var err error
		d, err = c.tx.Token(k, b, cost)
		require.NoError(c.t, err)
	})
	return d
}

func (c *caller) fixed(name string, f limit.Fixed, cost int64) (d limit.Decision) {
	c.with(name, func(k Key) {
		var err error
		d, err = c.tx.Fixed(k, f, cost)
		require.NoError(c.t, err)
	})
	return d
}

// Content describes all that a key holds, for comparisons.
func (c *caller) Content(name string) (text string) {
	c.with(name, func(k Key) {
		switch o := c.tx.lookup(k).(type) {
		case nil:
			text = "nothing"
		case *object.ZSet:
			text = fmt.Sprint("log until ", o.ExpireAt, ":")
			for member, score := range o.Set.Ascend(0, o.Set.Len()) {
				text += fmt.Sprintf(" %s@%d", member, int64(score))
			}
		case *object.Token:
			text = fmt.Sprint(o.ExpireAt, o.Tokens())
		case *object.Fixed:
			text = fmt.Sprint(o.ExpireAt, o.Count())
		case object.State:
			text = fmt.Sprint(o.Deadline(), o.Numbers())
		}
		for r := range object.ExtensionOf(c.tx.lookup(k)).Reservations().All(0) {
			text += fmt.Sprintf(", %s holds %d until %d", r.Call, r.Amount, r.Until)
		}
	})
	return text
}

// hit is an admitted unit in the reference model's list.
type hit struct {
	at int64
	id string
}

// bruteSlide is a reference model of RL.SLIDE and RL.MULTI that counts hits.
type bruteSlide struct{ hits []hit }

func (b *bruteSlide) used(window, now int64) (n int64) {
	for _, h := range b.hits {
		if h.at > now-window && h.at <= now {
			n++
		}
	}
	return n
}

func (b *bruteSlide) admits(rules []limit.Window, cost, now int64) bool {
	for _, r := range rules {
		if b.used(r.Length, now)+max(cost, 1) > r.Limit {
			return false
		}
	}
	return true
}

func (b *bruteSlide) repeated(id string, window, now int64) bool {
	return id != "" && slices.ContainsFunc(b.hits, func(h hit) bool { return h.id == id && h.at > now-window })
}

// Laws 1 to 5 for sliding windows on keys, with ids, deadlines, lapsed hits and expiring keys.
func TestSlideMatchesModel(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range histories(300) {
		rules := make([]limit.Window, 1+r.IntN(3))
		for i := range rules {
			rules[i] = limit.Window{Limit: 1 + r.Int64N(6), Length: 1 + r.Int64N(60)}
		}
		window := limit.Longest(rules)
		c, brute := newCaller(t, Options{}), &bruteSlide{}
		for range 120 {
			c.now += r.Int64N(12) * r.Int64N(3)
			cost, id := r.Int64N(5), ""
			if r.IntN(3) == 0 {
				id = fmt.Sprint("id", r.IntN(8))
			}
			before := c.Content("k")
			d := c.slide("k", rules, cost, id)
			call := fmt.Sprintf("rules %v cost %d id %q at +%d", rules, cost, id, c.now-epoch)

			if brute.repeated(id, window, c.now) {
				require.True(t, d.Allowed, "a retry is admitted: %s", call)
				require.Equal(t, before, c.Content("k"), "and counts nothing: %s", call)
				continue
			}
			require.Equal(t, brute.admits(rules, cost, c.now), d.Allowed, "laws 2 and 3: %s", call)
			if !d.Allowed {
				require.Equal(t, before, c.Content("k"), "law 1: %s", call)
				requireExactRetry(t, brute, rules, cost, c.now, d.RetryAfter, call)
				continue
			}
			if cost == 0 {
				require.Equal(t, before, c.Content("k"), "a peek changes nothing: %s", call)
				continue
			}
			for n := range cost {
				name := ""
				if id != "" && n == 0 {
					name = id
				}
				brute.hits = append(brute.hits, hit{c.now, name})
			}
			require.True(
				t,
				strings.HasPrefix(c.Content("k"), fmt.Sprint("log until ", c.now+window, ":")),
				"the deadline is one window away: %s",
				call,
			)
			require.EqualValues(
				t,
				brute.used(window, c.now),
				strings.Count(c.Content("k"), "@"),
				"law 5, and no lapsed hit stays: %s",
				call,
			)
		}
	}
}

// requireExactRetry is law 4: the same call is denied 1 ms earlier and admitted at that time.
func requireExactRetry(t *testing.T, brute *bruteSlide, rules []limit.Window, cost, now, retry int64, call string) {
	t.Helper()
	if slices.ContainsFunc(rules, func(r limit.Window) bool { return cost > r.Limit }) {
		require.EqualValues(t, limit.Never, retry, call)
		return
	}
	require.Positive(t, retry, call)
	require.False(t, brute.admits(rules, cost, now+retry-1), "law 4, too late: %s", call)
	require.True(t, brute.admits(rules, cost, now+retry), "law 4, too early: %s", call)
}

// The names of hits stay unique when a log comes from another shard, and when a client adds
// members with such names.
func TestHitsNeverCollide(t *testing.T) {
	c := newCaller(t, Options{})
	rules := []limit.Window{{Limit: 100, Length: 1000}}
	c.with("k", func(k Key) {
		for _, name := range []string{"1767225600000-0", "1767225600000-2"} {
			o := c.tx.lookup(k)
			c.tx.apply(o, &effect.Effect{Kind: effect.Add, Key: k, Field: []byte(name), Score: epoch})
		}
	})
	d := c.slide("k", rules, 3, "")
	assert.EqualValues(t, 95, d.Remaining)
	assert.Equal(t, 5, strings.Count(c.Content("k"), "@"))

	// A member that is named like a hit, but whose score is another time, takes a name as well.
	c.with("odd", func(k Key) {
		c.tx.apply(nil, &effect.Effect{Kind: effect.Add, Key: k, Field: []byte("1767225600000-5"), Score: epoch - 500})
	})
	c.slide("odd", rules, 3, "")
	c.slide("odd", rules, 3, "")
	assert.Equal(t, 7, strings.Count(c.Content("odd"), "@"))
}

// The names that an id gives are skipped if a client has added such members: every hit counts.
func TestSlideSkipsTakenNamesOfID(t *testing.T) {
	c := newCaller(t, Options{})
	rules := []limit.Window{{Limit: 100, Length: 1000}}
	c.with("k", func(k Key) {
		_, _, err := c.tx.ZAdd(k, 0, []zset.Member{{Member: []byte("a:2"), Score: float64(c.now)}})
		require.NoError(t, err)
	})
	c.slide("k", rules, 2, "a")
	assert.Equal(t, "log until 1767225601000: a@1767225600000 a:2@1767225600000 a:3@1767225600000", c.Content("k"))
	assert.EqualValues(t, 97, c.slide("k", rules, 0, "").Remaining)
}

func TestCostsOfWindowsThatAreTooLarge(t *testing.T) {
	c := newCaller(t, Options{})
	c.with("k", func(k Key) {
		d, err := c.tx.Slide(k, []limit.Window{{Limit: 5, Length: 1000}}, limit.MaxCount, nil)
		assert.NoError(t, err)
		assert.EqualValues(t, limit.Never, d.RetryAfter, "a cost above the limit is denied, however large")
	})
	assert.Equal(t, "nothing", c.Content("k"))
}

func TestLimitersRefuseOtherTypes(t *testing.T) {
	c := newCaller(t, Options{})
	c.token("t", limit.Bucket{Capacity: 1, Refill: 1, Period: 1000}, 1)
	c.slide("s", []limit.Window{{Limit: 1, Length: 1000}}, 1, "")
	c.with("t", func(k Key) {
		_, err := c.tx.Slide(k, []limit.Window{{Limit: 1, Length: 1}}, 1, nil)
		assert.Equal(t, ErrWrongType, err)
		_, err = c.tx.Fixed(k, limit.Fixed{Limit: 1, Window: limit.Every(1)}, 1)
		assert.Equal(t, ErrWrongType, err)
	})
	c.with("s", func(k Key) {
		_, err := c.tx.Token(k, limit.Bucket{Capacity: 1, Refill: 1, Period: 1}, 1)
		assert.Equal(t, ErrWrongType, err)
	})
}

// A limiter's key expires when its state equals that of an unused limiter, not earlier.
func TestLimiterDeadlines(t *testing.T) {
	c := newCaller(t, Options{})
	assert.EqualValues(t, 2000, c.token("t", limit.Bucket{Capacity: 5, Refill: 1, Period: 1000}, 2).ResetAfter)
	assert.EqualValues(t, 1000, c.fixed("f", limit.Fixed{Limit: 5, Window: limit.Every(1000)}, 2).ResetAfter)
	c.now += 1001
	assert.Equal(t, "nothing", c.Content("f"))
	assert.NotEqual(t, "nothing", c.Content("t"))
	c.now += 1000
	assert.Equal(t, "nothing", c.Content("t"))
}

// The largest numbers that the contract allows neither overflow nor panic.
func TestLargestLimitersDoNotOverflow(t *testing.T) {
	c := newCaller(t, Options{})
	const tenYears = 10 * 365 * 24 * 3600 * 1000
	d := c.token("t", limit.Bucket{Capacity: limit.MaxCount, Refill: 1, Period: tenYears}, limit.MaxCount)
	assert.True(t, d.Allowed)
	assert.EqualValues(t, math.MaxInt64, d.ResetAfter)
	c.now += tenYears
	assert.EqualValues(
		t,
		1,
		c.token("t", limit.Bucket{Capacity: limit.MaxCount, Refill: 1, Period: tenYears}, 0).Remaining,
	)
	d = c.slide("s", []limit.Window{{Limit: limit.MaxCount, Length: tenYears}}, 1, "")
	assert.EqualValues(t, limit.MaxCount-1, d.Remaining)
	assert.EqualValues(t, tenYears, d.ResetAfter)
}

// Two callers read the clock in one order and take the lock in the other: the later time is used
// for both.
func TestTimeNeverRunsBackwardForAKey(t *testing.T) {
	c := newCaller(t, Options{Shards: 1})
	rules := []limit.Window{{Limit: 2, Length: 1000}}
	c.slide("k", rules, 1, "")
	c.now -= 600
	c.slide("k", rules, 1, "")
	assert.False(t, c.slide("k", rules, 1, "").Allowed, "an earlier reading does not hide the hits")
	assert.Equal(
		t,
		"log until 1767225601000: 1767225600000-0@1767225600000 1767225600000-1@1767225600000",
		c.Content("k"),
	)
}

func BenchmarkDecisions(b *testing.B) {
	token := limit.Bucket{Capacity: 1 << 50, Refill: 1, Period: 1000}
	b.Run("token admitted", func(b *testing.B) {
		c := newCaller(b, Options{})
		keys := []Key{c.e.Key([]byte("key:123456"))}
		l := &Limit{Key: keys[0], Rule: rule.Rule{Kind: rule.Token, Token: token}}
		b.ReportAllocs()
		for b.Loop() {
			c.tx.Begin(c.now, 0, keys, true)
			_, _ = c.tx.decideAt(l, 1)
			c.tx.End()
		}
	})
	b.Run("token denied", func(b *testing.B) {
		c := newCaller(b, Options{})
		keys := []Key{c.e.Key([]byte("key:123456"))}
		l := &Limit{
			Key:  keys[0],
			Rule: rule.Rule{Kind: rule.Token, Token: limit.Bucket{Capacity: 1, Refill: 1, Period: 1000}},
		}
		c.token("key:123456", l.Token, 1)
		b.ReportAllocs()
		for b.Loop() {
			c.tx.Begin(c.now, 0, keys, true)
			_, _ = c.tx.decideAt(l, 1)
			c.tx.End()
		}
	})
	for _, size := range []int64{10, 1000, 100000} {
		rules := []limit.Window{{Limit: size, Length: size}}
		b.Run(fmt.Sprint("slide admitted, window of ", size), func(b *testing.B) {
			c := newCaller(b, Options{})
			k := c.e.Key([]byte("key:123456"))
			keys := []Key{k}
			b.ReportAllocs()
			for b.Loop() {
				c.now++
				c.tx.Begin(c.now, 0, keys, true)
				c.tx.Slide(k, rules, 1, nil)
				c.tx.End()
			}
		})
		b.Run(fmt.Sprint("slide denied, window of ", size), func(b *testing.B) {
			c := newCaller(b, Options{})
			k := c.e.Key([]byte("key:123456"))
			keys := []Key{k}
			for range size {
				c.slide("key:123456", rules, 1, "")
			}
			b.ReportAllocs()
			for b.Loop() {
				c.tx.Begin(c.now, 0, keys, true)
				c.tx.Slide(k, rules, 1, nil)
				c.tx.End()
			}
		})
	}
}

// Law 4 with a hit in the future, from a clock that was ahead: it counts once its time has come,
// so the log is kept until it lapses.
func TestFutureHitsAreKept(t *testing.T) {
	c := newCaller(t, Options{})
	rules := []limit.Window{{Limit: 2, Length: 1000}}
	c.with("k", func(k Key) {
		c.tx.apply(nil, &effect.Effect{Kind: effect.Add, Key: k, Field: []byte("ahead"), Score: epoch + 800})
	})
	assert.EqualValues(t, 1800, c.slide("k", rules, 1, "").ResetAfter)
	d := c.slide("k", rules, 2, "")
	assert.False(t, d.Allowed)
	assert.EqualValues(t, 1800, d.RetryAfter)
	c.now += d.RetryAfter - 1
	assert.False(t, c.slide("k", rules, 2, "").Allowed)
	c.now++
	assert.True(t, c.slide("k", rules, 2, "").Allowed)
}

// Taken names are skipped in a few steps, wherever they are in the sequence.
func TestHitSequenceSkipsTakenNames(t *testing.T) {
	const n = 1000
	for _, taken := range [][]uint64{{}, {0}, {n - 1}, {0, n}, {n - 1, 2*n - 1, 3*n - 1}, {5, 6, 7, n + 3},
		{n, n + 1}} {
		c := newCaller(t, Options{})
		c.with("k", func(k Key) {
			o := c.tx.apply(nil, &effect.Effect{Kind: effect.Add, Key: k, Field: []byte("other"), Score: epoch})
			for _, seq := range taken {
				o = c.tx.apply(
					o,
					&effect.Effect{
						Kind:  effect.Add,
						Key:   k,
						Field: effect.Hits{At: epoch, Seq: seq}.Member(nil, 0),
						Score: epoch,
					},
				)
			}
			first, _ := new(effect.Sequence).Next(&o.(*object.ZSet).Set, epoch, n)
			for _, seq := range taken {
				assert.False(t, first <= seq && seq < first+n, "%d of %v is in %d…%d", seq, taken, first, first+n-1)
			}
			assert.LessOrEqual(t, first, uint64(3*n), "no further than needed")
		})
	}
}

// An idle Tx keeps no deleted object alive.
func TestIdleTxKeepsNoObject(t *testing.T) {
	c := newCaller(t, Options{})
	c.slide("k", []limit.Window{{Limit: 2, Length: 1000}}, 1, "")
	c.slide("k", []limit.Window{{Limit: 2, Length: 1000}}, 1, "")
	assert.Zero(t, c.tx.log)
}

// Law 4 when a rule is lengthened or a client has set a deadline: the key expires earlier than
// the rule says, and retry_after takes that into account.
func TestRetryAfterEndsWithExpiry(t *testing.T) {
	short, long := []limit.Window{{Limit: 2, Length: 300}}, []limit.Window{{Limit: 2, Length: 3600000}}
	fewer, more := limit.Bucket{
		Capacity: 10,
		Refill:   10,
		Period:   300,
	}, limit.Bucket{
		Capacity: 10,
		Refill:   1,
		Period:   3600000,
	}
	minute, day := limit.Fixed{
		Limit:  2,
		Window: limit.Every(60000),
	}, limit.Fixed{
		Limit:  2,
		Window: limit.Every(86400000),
	}
	for name, call := range map[string]struct {
		first, then func(c *caller) limit.Decision
	}{
		"slide": {func(c *caller) limit.Decision { return c.slide("k", short, 2, "") },
			func(c *caller) limit.Decision { return c.slide("k", long, 1, "") }},
		"token": {func(c *caller) limit.Decision { return c.token("k", fewer, 10) },
			func(c *caller) limit.Decision { return c.token("k", more, 1) }},
		"fixed": {func(c *caller) limit.Decision { return c.fixed("k", minute, 2) },
			func(c *caller) limit.Decision { return c.fixed("k", day, 1) }},
		"expire": {func(c *caller) limit.Decision {
			d := c.slide("k", long, 2, "")
			c.with("k", func(k Key) { c.tx.Expire(k, c.now+50, 0) })
			return d
		}, func(c *caller) limit.Decision { return c.slide("k", long, 1, "") }},
	} {
		c := newCaller(t, Options{})
		require.True(t, call.first(c).Allowed, name)
		d := call.then(c)
		require.False(t, d.Allowed, name)
		assert.LessOrEqual(t, d.RetryAfter, d.ResetAfter, name)
		c.now += d.RetryAfter - 1
		assert.False(t, call.then(c).Allowed, "%s: one millisecond too early", name)
		c.now++
		assert.True(t, call.then(c).Allowed, "%s: at retry_after", name)
	}
}

// A call looks at a bounded number of hits in the future, however many a client adds to a log.
func TestFutureHitsVisitedIsBounded(t *testing.T) {
	c := newCaller(t, Options{})
	rules := make([]limit.Window, 128)
	for i := range rules {
		rules[i] = limit.Window{Limit: 1, Length: 1000 + int64(i)}
	}
	const hits = 20000
	c.with("k", func(k Key) {
		o := object.Object(nil)
		for i := range hits {
			o = c.tx.apply(
				o,
				&effect.Effect{
					Kind:  effect.Add,
					Key:   k,
					Field: fmt.Append(nil, "m", i),
					Score: epoch + 500 + float64(i)*1000,
				},
			)
		}
		c.tx.apply(o, &effect.Effect{Kind: effect.Add, Key: k, Field: []byte("now"), Score: epoch})
	})
	d := c.slide("k", rules, 1, "")
	assert.False(t, d.Allowed)
	c.now += d.RetryAfter
	assert.True(t, c.slide("k", rules, 1, "").Allowed, "retry_after is too long, not too short")
}

// BenchmarkManyKeys decides on random keys out of 100,000, one call at a time and 16 under one
// lock: the cost of a decision when its key is not in the processor's cache. 3,000,000 calls are
// made beforehand.
func BenchmarkManyKeys(b *testing.B) {
	const keys, before = 100_000, 3_000_000
	for _, decide := range []struct {
		name string
		call func(tx *Tx, k Key)
	}{
		{"slide", func(tx *Tx, k Key) { tx.Slide(k, []limit.Window{{Limit: 100, Length: 60_000}}, 1, nil) }},
		{"token", func(tx *Tx, k Key) { tx.Token(k, limit.Bucket{Capacity: 100, Refill: 100, Period: 60_000}, 1) }},
	} {
		for _, together := range []int{1, 16} {
			b.Run(fmt.Sprint(decide.name, "/", together), func(b *testing.B) {
				e := New(Options{})
				tx, r, calls := e.NewTx(), rand.New(rand.NewPCG(1, 1)), int64(0)
				names, held := make([][16]byte, together), make([]Key, together)
				call := func() {
					for j := range names {
						name := append(names[j][:0], "key:000000000000"...)
						for n, i := r.IntN(keys), len(name)-1; n > 0; n, i = n/10, i-1 {
							name[i] = byte('0' + n%10)
						}
						held[j] = e.Key(name)
					}
					calls += int64(together)
					tx.Begin(epoch+calls/500, 0, held[:1], true)
					tx.Join(held[1:])
					tx.Prefetch(held)
					for _, k := range held {
						decide.call(tx, k)
					}
					tx.End()
				}
				for calls < before {
					call()
				}
				b.ReportAllocs()
				b.ResetTimer()
				for n := 0; n < b.N; n += together {
					call()
				}
			})
		}
	}
}

// A denial reports the first of the windows with the longest wait, also if the key expires
// before they admit. Each window's wait is that of a call with this window alone.
func TestDenialReportsFirstOfEqualWaits(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range histories(400) {
		c, rules := newCaller(t, Options{}), make([]limit.Window, 2+r.IntN(3))
		for i := range rules {
			rules[i] = limit.Window{Limit: 1 + r.Int64N(3), Length: 10 + 10*r.Int64N(4)}
		}
		for range 40 {
			c.now += r.Int64N(8)
			if r.IntN(4) == 0 {
				c.with("k", func(k Key) { c.tx.Expire(k, c.now+r.Int64N(20), 0) })
			}
			cost := 1 + r.Int64N(2)
			want := limit.Decision{Allowed: true, Remaining: math.MaxInt64}
			for i := range rules {
				one := c.peek("k", rules[i:i+1], cost)
				switch {
				case !one.Allowed && (want.Allowed || uint64(one.RetryAfter) > uint64(want.RetryAfter)):
					want, want.Index = one, i
				case one.Allowed && want.Allowed && one.Remaining < want.Remaining:
					want, want.Index = one, i
				}
			}
			d := c.slide("k", rules, cost, "")
			require.Equal(t, want.Index, d.Index, "%+v of %+v: %+v, alone %+v", cost, rules, d, want)
			require.Equal(t, want.Limit, d.Limit)
			if !d.Allowed {
				require.Equal(t, want.RetryAfter, d.RetryAfter)
				require.Equal(t, want.Remaining, d.Remaining)
			}
			k := c.e.Key([]byte("k"))
			limits := make([]Limit, len(rules))
			for i := range rules {
				limits[i] = Limit{Key: k, Rule: rule.Rule{Kind: rule.Slide, Slide: rules[i]}}
			}
			c.with("k", func(Key) {
				c.tx.DryRun(func() {
					multi, err := c.tx.Slide(k, rules, cost, nil)
					require.NoError(t, err)
					all, err := c.tx.allAt(limits, cost)
					require.NoError(t, err)
					require.Equal(t, multi, all)
				})
			})
		}
	}
}

// peek returns what slide would return.
func (c *caller) peek(name string, rules []limit.Window, cost int64) (d limit.Decision) {
	c.with(name, func(k Key) {
		c.tx.DryRun(func() {
			var err error
			d, err = c.tx.Slide(k, rules, cost, nil)
			require.NoError(c.t, err)
		})
	})
	return d
}

// A key counts in one fixed window at a time: a call with another one gets an error and changes
// nothing.
func TestFixedRefusesOtherWindow(t *testing.T) {
	c := newCaller(t, Options{})
	hour, minute := limit.Fixed{
		Limit:  100,
		Window: limit.Every(3600_000),
	}, limit.Fixed{
		Limit:  5,
		Window: limit.Every(60_000),
	}
	day := limit.Fixed{Limit: 200, Window: limit.Calendar(limit.Day, nil)}
	c.fixed("k", minute, 3)
	assert.EqualValues(t, 96, c.fixed("k", hour, 1).Remaining, "a window that contains the other takes its hits over")
	before := c.Content("k")
	const refused = "ERR key 'k' counts in another window until 2026-01-01T01:00:00.000Z: give each window of " +
		"RL.FIXED a key of its own"
	c.with("k", func(k Key) {
		for cost := range int64(2) {
			_, err := c.tx.Fixed(k, minute, cost)
			assert.EqualError(t, err, refused)
			_, err = c.tx.allAt(
				[]Limit{{Key: c.e.Key([]byte("k2")),
					Rule: rule.Rule{Kind: rule.Token, Token: limit.Bucket{Capacity: 1, Refill: 1, Period: 1}}},
					{Key: k, Rule: rule.Rule{Kind: rule.Fixed, Fixed: minute}}}[1:],
				cost,
			)
			assert.EqualError(t, err, refused)
		}
	})
	assert.Equal(t, before, c.Content("k"))
	assert.EqualValues(t, 195, c.fixed("k", day, 1).Remaining)
	c.Refund("k", 5, "")
	assert.EqualValues(t, 4, c.fixed("k", minute, 1).Remaining, "the key is deleted")
	c.now += 60_000
	assert.EqualValues(t, 98, c.fixed("k", hour, 1).Remaining, "the minute is within the hour")
}

// The fraction of a token that a bucket has earned stays the same fraction when the period
// changes.
func TestTokenKeepsFractionWhenPeriodChanges(t *testing.T) {
	c := newCaller(t, Options{})
	slow, fine := limit.Bucket{Capacity: 2, Refill: 10, Period: 1000}, limit.Bucket{Capacity: 2, Refill: 1, Period: 100}
	c.token("k", slow, 2)
	c.now += 110
	require.True(t, c.token("k", slow, 1).Allowed)
	assert.EqualValues(t, 90, c.token("k", fine, 1).RetryAfter)
	assert.EqualValues(t, 90, c.token("k", slow, 1).RetryAfter)
}

// A bucket and a window that earlier versions stored are used as they are, and are stored again
// unchanged until a call changes them.
func TestStatesOfEarlierVersionsAreUsed(t *testing.T) {
	log := new(recorder)
	c := newCaller(t, Options{Journal: log})
	bucket, window := limit.Tokens{Missing: 4, Earned: 17, Since: epoch}, limit.Count{Start: epoch, Used: 3}
	require.NoError(t, c.e.Apply(epoch, []effect.Effect{
		{Kind: effect.Tokens, Key: c.e.Key([]byte("t")), Tokens: bucket, ExpireAt: epoch + 4000},
		{Kind: effect.Count, Key: c.e.Key([]byte("f")), Count: window, ExpireAt: epoch + 60_000},
	}))
	assert.Equal(t, fmt.Sprint(epoch+4000, bucket), c.Content("t"))
	assert.Equal(t, dump(c.e), dump(throughASnapshot(t, c.e)))
	rule := limit.Bucket{Capacity: 5, Refill: 1, Period: 1000}
	assert.EqualValues(t, 983, c.token("t", rule, 2).RetryAfter)
	assert.EqualValues(t, 1, c.Refund("t", 1, ""))
	assert.Equal(t, dump(c.e), dump(throughASnapshot(t, c.e)))
	assert.EqualValues(t, 983, c.token("t", rule, 3).RetryAfter)
	assert.True(t, c.token("t", rule, 2).Allowed)
	assert.EqualValues(t, 983, c.token("t", rule, 1).RetryAfter)
	hour := limit.Fixed{Limit: 5, Window: limit.Every(3600_000)}
	assert.EqualValues(t, 1, c.fixed("f", hour, 1).Remaining)
	assert.Equal(t, limit.Count{Start: epoch, Length: 3600_000, Used: 4}, log.calls[len(log.calls)-1][0].Count)
}

// throughASnapshot returns a new engine after applying a snapshot of e to it.
func throughASnapshot(t *testing.T, e *Engine) *Engine {
	restored := New(Options{})
	for s := e.Snapshot(func() {}); s.Step(func(effects []effect.Effect) {
		require.NoError(t,
			restored.Apply(epoch, effects))
	}); {
	}
	return restored
}
