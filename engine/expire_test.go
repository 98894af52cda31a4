package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
)

func TestExpireConditions(t *testing.T) {
	const before, at, later = epoch + 1000, epoch + 2000, epoch + 3000
	for _, step := range []struct {
		name       string
		conditions ExpireIf
		current    int64
		want       bool
	}{
		{"always", 0, 0, true},
		{"always", 0, later, true},
		{"NX", ExpireNX, 0, true},
		{"NX", ExpireNX, before, false},
		{"XX", ExpireXX, 0, false},
		{"XX", ExpireXX, before, true},
		{"GT: no deadline counts as infinite", ExpireGT, 0, false},
		{"GT", ExpireGT, before, true},
		{"GT", ExpireGT, at, false},
		{"GT", ExpireGT, later, false},
		{"LT: no deadline counts as infinite", ExpireLT, 0, true},
		{"LT", ExpireLT, before, false},
		{"LT", ExpireLT, at, false},
		{"LT", ExpireLT, later, true},
		{"XX LT", ExpireXX | ExpireLT, 0, false},
		{"XX LT", ExpireXX | ExpireLT, later, true},
		{"XX GT", ExpireXX | ExpireGT, before, true},
	} {
		c := newCaller(t, Options{})
		c.with("k", func(k Key) {
			c.tx.Set(k, []byte("v"), SetMode{ExpireAt: step.current})
			assert.Equal(t, step.want, c.tx.Expire(k, at, step.conditions), "%s, from %d", step.name, step.current)
			deadline, ok := c.tx.Deadline(k)
			assert.True(t, ok)
			if step.want {
				assert.EqualValues(t, at, deadline)
			} else {
				assert.Equal(t, step.current, deadline)
			}
		})
	}
}

// A key exists up to and including its deadline; a deadline that is not after now deletes it.
func TestExpireSetsAndRemovesDeadlines(t *testing.T) {
	log := new(recorder)
	c := newCaller(t, Options{Journal: log})
	exists := func() (yes bool) {
		c.with("k", func(k Key) { yes = c.tx.Exists(k) })
		return yes
	}
	set := func() { c.with("k", func(k Key) { c.tx.Set(k, []byte("v"), SetMode{}) }) }
	expire := func(at int64) (done bool) {
		c.with("k", func(k Key) { done = c.tx.Expire(k, at, 0) })
		return done
	}

	assert.False(t, expire(epoch+1000), "no key")
	c.with("k", func(k Key) {
		_, ok := c.tx.Deadline(k)
		assert.False(t, ok)
		assert.False(t, c.tx.Persist(k))
	})
	set()
	assert.True(t, expire(epoch+1000))
	assert.True(t, expire(epoch+1000), "again")
	c.now = epoch + 1000
	assert.True(t, exists())
	c.now++
	assert.False(t, exists())
	assert.False(t, expire(c.now+1000), "an expired key is missing")

	set()
	assert.True(t, expire(c.now))
	assert.False(t, exists())
	set()
	assert.True(t, expire(-5))
	assert.False(t, exists())
	set()
	assert.True(t, expire(math.MaxInt64))
	c.with("k", func(k Key) {
		assert.True(t, c.tx.Persist(k))
		assert.False(t, c.tx.Persist(k))
		at, ok := c.tx.Deadline(k)
		assert.True(t, ok)
		assert.Zero(t, at)
	})

	var kinds []effect.Kind
	for _, f := range log.effects() {
		kinds = append(kinds, f.Kind)
	}
	assert.Equal(t, []effect.Kind{effect.String, effect.Expire, // the second Expire changed nothing
		// expired, deleted by the next writer; then deleted by a deadline in the past
		effect.Delete, effect.String, effect.Delete,
		effect.String, effect.Delete,
		effect.String, effect.Expire, effect.Expire}, kinds)
	assert.Equal(t, dump(c.e), dump(log.replayed(Options{})))
}

// fillBuckets fills an engine: databases 0, 2 and 3 with token buckets that are full again at
// epoch+1000 or, if late, epoch+9000, and database 1 with strings that stay. It returns how many
// keys each database has.
func fillBuckets(e *Engine, n int, late func(i int) bool) (sizes [4]int) {
	tx := e.NewTx()
	keys := make([]Key, 1)
	for i := range n {
		keys[0] = e.Key(fmt.Appendf(nil, "key:%d", i))
		db := i % 4
		sizes[db]++
		tx.Begin(epoch, db, keys, true)
		switch {
		case db == 1:
			tx.Set(keys[0], []byte("stays"), SetMode{})
		case late(i):
			tx.Token(keys[0], limit.Bucket{Capacity: 10, Refill: 1, Period: 1000}, 9)
		default:
			tx.Token(keys[0], limit.Bucket{Capacity: 10, Refill: 1, Period: 1000}, 1)
		}
		tx.End()
	}
	return sizes
}

// observedSweeper counts the work of a sweeper in each step, which does not depend on the speed of
// the machine.
type observedSweeper struct {
	*Sweeper
	looked, most int // keys visited in this step, and the most in one step
	deleted      int // in all
	steps        int
}

func watch(s *Sweeper) *observedSweeper {
	w := &observedSweeper{Sweeper: s}
	visit := s.visit
	s.visit = func(o object.Object) int64 {
		w.looked++
		return visit(o)
	}
	return w
}

func (w *observedSweeper) step(now int64) {
	w.looked = 0
	w.deleted += w.Step(now)
	w.steps++
	w.most = max(w.most, w.looked)
}

// round sweeps the whole keyspace once.
func (w *observedSweeper) round(now int64) {
	for end := w.Rounds() + 1; w.Rounds() < end; {
		w.step(now)
	}
}

// maxPerStep is how many keys a step may visit: those of full buckets, of which one or two may
// have a short chain.
const maxPerStep = sweepBuckets*16 + 32

func TestSweepRoundDeletesExpiredKeys(t *testing.T) {
	const manyKeys = 200_000
	e := New(Options{Seed: [2]uint64{1, 2}})
	late := func(i int) bool { return i%10 == 0 }
	sizes := fillBuckets(e, manyKeys, late)
	w := watch(e.NewSweeper())

	w.round(epoch + 1000)
	assert.Zero(t, w.deleted, "a key exists at its deadline")

	tx, probe := e.NewTx(), rand.New(rand.NewPCG(3, 4))
	var lateKeys int
	for i := range manyKeys {
		if late(i) && i%4 != 1 {
			lateKeys++
		}
	}
	now := int64(epoch + 1001)
	w.steps = 0
	for end := w.Rounds() + 1; w.Rounds() < end; {
		w.step(now)
		i := probe.IntN(manyKeys)
		k := e.Key(fmt.Appendf(nil, "key:%d", i))
		tx.Begin(now, i%4, []Key{k}, false)
		require.Equal(
			t,
			i%4 == 1 || late(i),
			tx.Exists(k),
			"an expired key is never visible, before and after the sweeper deletes it; key %d",
			i,
		)
		tx.End()
	}
	assert.Equal(t, manyKeys-sizes[1]-lateKeys, w.deleted)
	assert.LessOrEqual(t, w.most, maxPerStep)
	left := 0
	for db := range sizes {
		keys, expires := e.Size(db)
		left += expires
		if db == 1 {
			assert.Equal(t, sizes[1], keys)
		} else {
			assert.Equal(t, expires, keys)
		}
	}
	assert.Equal(t, lateKeys, left, "keys that have not expired")
	assert.EqualValues(t, w.deleted, e.Memory().Stats().Expired)
	requireSound(t, e)

	w.round(epoch + 9001)
	for db := range sizes {
		_, expires := e.Size(db)
		assert.Zero(t, expires)
	}
	w.most = 0
	w.round(epoch + 9001)
	assert.Zero(t, w.most, "nothing is visited if no key can be due")
}

// Keys whose deadline was postponed or removed are not deleted, and keys with a new deadline are
// deleted in time.
func TestSweepKeepsExtendedKeys(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	e := New(Options{Shards: 8, Databases: 4, Seed: [2]uint64{seed, 1}})
	const n = 5000
	fillBuckets(e, n, func(int) bool { return false })
	deadline := make([]int64, n) // expected deadlines; 0: none
	for i := range deadline {
		if i%4 != 1 {
			deadline[i] = epoch + 1000
		}
	}
	tx, w := e.NewTx(), watch(e.NewSweeper())
	for now := int64(epoch); now < epoch+20000; now += r.Int64N(100) {
		for range r.IntN(40) {
			i := r.IntN(n)
			k := e.Key(fmt.Appendf(nil, "key:%d", i))
			tx.Begin(now, i%4, []Key{k}, true)
			alive := deadline[i] == 0 || deadline[i] >= now
			require.Equal(t, alive, tx.Exists(k))
			switch at := now + 1 + r.Int64N(5000); {
			case !alive:
			case r.IntN(10) == 0:
				tx.Persist(k)
				deadline[i] = 0
			default:
				tx.Expire(k, at, 0)
				deadline[i] = at
			}
			tx.End()
		}
		for range r.IntN(10) {
			w.step(now)
		}
	}
	now := int64(epoch + 20000)
	w.round(now)
	for i, at := range deadline {
		o := e.shardOf(e.Key(fmt.Appendf(nil, "key:%d", i))).find(i%4, e.Key(fmt.Appendf(nil, "key:%d", i)))
		require.Equal(t, at == 0 || at >= now, o != nil, "key %d, deadline %d", i, at)
	}
	requireSound(t, e)
}

// Deletions by the sweeper are recorded like any other change.
func TestSweepRecordsDeletions(t *testing.T) {
	log := new(recorder)
	e := New(Options{Databases: 4, Journal: log})
	fillBuckets(e, 1000, func(i int) bool { return i%3 == 0 })
	before := len(log.calls)
	w := watch(e.NewSweeper())
	w.round(epoch + 2000)

	var deleted []string
	for _, f := range slices.Concat(log.calls[before:]...) {
		require.Equal(t, effect.Delete, f.Kind)
		deleted = append(deleted, fmt.Sprint(f.DB, string(f.Key.Name)))
	}
	assert.Len(t, deleted, w.deleted)
	slices.Sort(deleted)
	assert.Len(t, slices.Compact(deleted), w.deleted, "each once")
	assert.Equal(t, dump(e), dump(log.replayed(Options{Databases: 4, Shards: 2})))
}

// The sweeper continues if the database that it is sweeping is flushed.
func TestSweepSkipsFlushedKeys(t *testing.T) {
	e := New(Options{Shards: 1, Databases: 4})
	fillBuckets(e, 8000, func(int) bool { return false })
	w := watch(e.NewSweeper())
	w.step(epoch)
	require.NotZero(t, w.cursor)
	tx := e.NewTx()
	tx.BeginAll(epoch, 0, true)
	tx.Flush()
	tx.End()
	for steps := 0; w.Rounds() < 1; steps++ {
		require.Less(t, steps, 10_000, "the sweeper makes no progress")
		w.step(epoch + 2000)
	}
	for db := range 4 {
		_, expires := e.Size(db)
		assert.Zero(t, expires, "the sweeper begins the next databases at their beginning")
	}
}

// Rounds increases with each step.
func TestSweepRoundsIncrease(t *testing.T) {
	e := New(Options{Shards: 2, Databases: 4})
	fillBuckets(e, 20000, func(int) bool { return false })
	w := watch(e.NewSweeper())
	last, tiny := 0.0, 1.0
	for now := int64(epoch); w.Rounds() < 2; now++ {
		w.step(now)
		require.Greater(t, w.Rounds(), last)
		tiny = min(tiny, w.Rounds()-last)
		last = w.Rounds()
	}
	assert.Less(t, tiny, 0.1)
}

// BenchmarkSweep measures how long the locks are held, and how long it takes, to delete a million
// token buckets at once.
func BenchmarkSweep(b *testing.B) {
	for _, journal := range []Journal{nil, discard{}} {
		b.Run(fmt.Sprintf("journal=%t", journal != nil), func(b *testing.B) {
			const n = 1_000_000
			for b.Loop() {
				b.StopTimer()
				e := New(Options{Journal: journal})
				tokens(e, n)
				s := e.NewSweeper()
				var steps []time.Duration
				b.StartTimer()
				begin := time.Now()
				for deleted := 0; deleted < n; {
					start := time.Now()
					deleted += s.Step(epoch + 2000)
					steps = append(steps, time.Since(start))
				}
				round := time.Since(begin)
				slices.Sort(steps)
				b.ReportMetric(float64(steps[len(steps)-1].Nanoseconds())/1000, "µs/longest")
				b.ReportMetric(float64(steps[len(steps)*99/100].Nanoseconds())/1000, "µs/p99")
				b.ReportMetric(float64(steps[len(steps)/2].Nanoseconds())/1000, "µs/median")
				b.ReportMetric(float64(round.Milliseconds()), "ms/round")
				b.ReportMetric(float64(len(steps)), "steps")
			}
		})
	}
}

// tokens fills database 0 with token buckets that are full again at epoch+1000.
func tokens(e *Engine, n int) {
	tx := e.NewTx()
	keys := make([]Key, 1)
	for i := range n {
		keys[0] = e.Key(fmt.Appendf(nil, "key:%d", i))
		tx.Begin(epoch, 0, keys, true)
		tx.Token(keys[0], limit.Bucket{Capacity: 10, Refill: 1, Period: 1000}, 1)
		tx.End()
	}
}

// discard is a journal that drops all effects.
type discard struct{}

func (discard) Append(int64, []byte) Position { return 1 }
func (discard) Wait(Position) error           { return nil }
