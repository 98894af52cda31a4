package engine

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/denials"
	"rlserver/engine/limit"
	"rlserver/engine/rule"
)

// With skewed random denials the counts are within the bounds of the algorithm.
func TestTopIsWithinErrorBounds(t *testing.T) {
	for _, skew := range []float64{1.05, 1.3, 2, 4} {
		seed := rand.Uint64()
		t.Log("seed", seed)
		r := rand.New(rand.NewPCG(seed, 0))
		some := rand.NewZipf(r, skew, 1, 100_000)
		c := newCaller(t, Options{Shards: 4, Seed: [2]uint64{seed, 1}})
		exact, ofShard := map[string]int64{}, map[int]int64{}
		for range 50_000 {
			name := fmt.Sprint("key:", some.Uint64())
			c.with(name, func(k Key) {
				c.tx.Denied(k)
				ofShard[c.e.shardIndex(k.Hash)]++
			})
			exact[name]++
		}
		bound := func(name string) int64 {
			return ofShard[c.e.shardIndex(c.e.Key([]byte(name)).Hash)] / denials.MaxCounters
		}

		top, reported := c.e.Memory().Top(0, 1<<20), map[string]bool{}
		require.LessOrEqual(t, len(top), c.e.MaxTop())
		for i, d := range top {
			name := string(d.Name)
			reported[name] = true
			assert.LessOrEqual(t, d.Count, exact[name], name)
			assert.GreaterOrEqual(t, d.Count, exact[name]-bound(name), name)
			assert.True(t, i == 0 || d.Count <= top[i-1].Count)
		}
		for name, n := range exact {
			assert.True(t, reported[name] || n <= bound(name), "%s was denied %d times", name, n)
		}
		assert.Equal(t, top[:3], c.e.Memory().Top(0, 3))
	}
}

func TestTopCountsDenials(t *testing.T) {
	c := newCaller(t, Options{})
	long := strings.Repeat("x", 1000)
	bucket := limit.Bucket{Capacity: 1, Refill: 1, Period: 1000}
	for name, n := range map[string]int64{"twice": 2, "once": 1, "also once": 1, long: 3, "never": 0} {
		c.token(name, bucket, 1)
		for range n {
			require.False(t, c.token(name, bucket, 1).Allowed)
		}
		c.token(name, bucket, 0) // a peek is not a denial
	}
	c.slide("slide", []limit.Window{{Limit: 1, Length: 1000}}, 2, "") // creates no key
	byBucket := &rule.Rule{Kind: rule.Token, Token: bucket}
	bySlide := &rule.Rule{Kind: rule.Slide, Slide: limit.Window{Limit: 1, Length: 1000}}
	want := []denials.Count{
		{Name: []byte(long[:denials.MaxName]), Count: 3, Rule: byBucket, Hash: c.e.Key([]byte(long)).Hash},
		{Name: []byte("twice"), Count: 2, Rule: byBucket},
		{Name: []byte("also once"), Count: 1, Rule: byBucket},
		{Name: []byte("once"), Count: 1, Rule: byBucket},
		{Name: []byte("slide"), Count: 1, Rule: bySlide},
	}
	assert.Equal(t, want, c.e.Memory().Top(denials.AllDatabases, 10))
	assert.Equal(t, bySlide, c.e.DeniedBy(0, c.e.Key([]byte("slide"))))
	assert.Nil(t, c.e.DeniedBy(1, c.e.Key([]byte("slide"))))
	assert.Equal(t, long, string(c.e.NameOf(0, want[0].Hash)))
	assert.Nil(t, c.e.NameOf(1, want[0].Hash))
	assert.Nil(t, c.e.NameOf(0, want[0].Hash+1))
	assert.Equal(t, want, c.e.Memory().Top(0, 10))
	assert.Equal(t, want[:2], c.e.Memory().Top(0, 2))
	assert.Empty(t, c.e.Memory().Top(1, 10), "another database")
	c.e.ResetStats()
	assert.Empty(t, c.e.Memory().Top(0, 10))
}

// Of several rules in one call, Top reports the one that denies.
func TestTopReportsDenyingRule(t *testing.T) {
	c := newCaller(t, Options{})
	windows := []limit.Window{{Limit: 10, Length: 1000}, {Limit: 2, Length: 5000}}
	for range 3 {
		c.slide("windows", windows, 1, "")
	}
	rules := map[string]string{}
	for _, d := range c.e.Memory().Top(denials.AllDatabases, 10) {
		rules[string(d.Name)] = d.Rule.String()
	}
	assert.Equal(t, map[string]string{"windows": "SLIDE 2 5s"}, rules)

	p := newChecker(t, "wide SLIDE 9 1h", "login FIXED 1 day TZ Europe/Berlin")
	for range 3 {
		p.must("ann", "wide login", 1, "")
	}
	top := p.e.Memory().Top(denials.AllDatabases, 10)
	require.Len(t, top, 1)
	assert.Equal(t, "login:{ann} FIXED 1 day TZ Europe/Berlin", string(top[0].Name)+" "+top[0].Rule.String())
}

// A denied decision does not allocate, whether its key has a counter already or takes over another
// one's.
func TestDenialsDoNotAllocate(t *testing.T) {
	e := New(Options{Shards: 1})
	tx := e.NewTx()
	var keys [2 * denials.MaxCounters][1]Key
	for i := range keys {
		keys[i][0] = e.Key(fmt.Appendf(nil, "%32d", i))
	}
	i, l := 0, &Limit{Rule: rule.Rule{Kind: rule.Token, Token: limit.Bucket{Capacity: 1, Refill: 1, Period: 1000}}}
	deny := func() {
		k := &keys[i%len(keys)]
		i++
		tx.Begin(epoch, 0, k[:], true)
		l.Key = k[0]
		_, _ = tx.decideAt(l, 2)
		tx.End()
	}
	for range keys {
		deny()
	}
	assert.Zero(t, testing.AllocsPerRun(1000, deny))
}

func BenchmarkDenied(b *testing.B) {
	for name, keys := range map[string]int{"one key": 1, "few keys": 1000, "any key": 1_000_000} {
		b.Run(name, func(b *testing.B) {
			e := New(Options{})
			tx, r := e.NewTx(), rand.New(rand.NewPCG(1, 2))
			list := make([][1]Key, keys)
			for i := range list {
				list[i][0] = e.Key(fmt.Append(nil, i))
			}
			b.ReportAllocs()
			for b.Loop() {
				k := &list[r.IntN(keys)]
				tx.Begin(epoch, 0, k[:], true)
				tx.Token(k[0], limit.Bucket{Capacity: 1, Refill: 1, Period: 1000}, 2)
				tx.End()
			}
		})
	}
}
