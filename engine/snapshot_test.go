package engine

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/object"
	"rlserver/engine/reserve"
	"rlserver/internal/dict"
	"rlserver/zset"
)

// restoring is a snapshot in progress, and the engine that its effects are applied to.
type restoring struct {
	t    testing.TB
	s    *Snapshot
	copy *Engine
	at   int64
	want []string       // the dump at the time of the snapshot
	log  int            // the number of calls recorded by then
	seen map[string]int // the number of visits of each key and element
}

func restore(t testing.TB, e *Engine, log *recorder) *restoring {
	r := &restoring{t: t, seen: make(map[string]int)}
	r.copy = New(Options{Databases: e.databases, Shards: 4, Seed: [2]uint64{8, 15}})
	r.s = e.Snapshot(func() {
		r.at = e.shards[0].now
		r.want = living(e, r.at)
		if log != nil {
			r.log = len(log.calls)
		}
	})
	return r
}

func (r *restoring) visit(effects []effect.Effect) {
	require.NotEmpty(r.t, effects)
	for i := range effects {
		f := &effects[i]
		require.Equal(r.t, effects[0].DB, f.DB, "a group is about one key")
		require.Equal(r.t, effects[0].Key.Name, f.Key.Name, "a group is about one key")
		r.seen[fmt.Sprintf("%d %q %d %q", f.DB, f.Key.Name, f.Kind, f.Field)]++
	}
	require.NoError(r.t, r.copy.Apply(r.at, effects))
}

func (r *restoring) step() (more bool) { return r.s.Step(r.visit) }

// finish checks the copy after the last step.
func (r *restoring) finish() {
	r.t.Helper()
	require.Equal(r.t, r.want, dump(r.copy))
	requireSound(r.t, r.copy)
	for what, times := range r.seen {
		require.Equal(r.t, 1, times, "visits of %s", what)
	}
	done, total := r.s.Keys()
	require.Equal(r.t, total, done)
	require.False(r.t, r.step(), "there is no more")
}

// catchUp applies the log since the snapshot, and checks that the copy then equals the engine.
func (r *restoring) catchUp(e *Engine, log *recorder) {
	r.t.Helper()
	for _, call := range log.calls[r.log:] {
		require.NoError(r.t, r.copy.Apply(0, call))
	}
	require.Equal(r.t, living(e, r.at), living(r.copy, r.at))
	requireSound(r.t, r.copy)
}

// bulkChanges change many keys at once, or make large ones, which the calls of a walk rarely do.
var bulkChanges = []func(w *walk){
	func(w *walk) { // many new keys, so that buckets split
		for range 50 + w.IntN(400) {
			w.bulkCall(func(k Key) { w.tx.Set(k, w.value(), SetMode{ExpireAt: w.bulkDeadline()}) })
		}
	},
	func(w *walk) {
		for range 50 + w.IntN(400) {
			w.bulkCall(func(k Key) { _, _ = w.tx.Token(k, limit.Bucket{Capacity: 7, Refill: 3, Period: 1000}, 1) })
		}
	},
	func(w *walk) { // most of them deleted, so that buckets merge
		for i := range bulkKeys {
			if w.IntN(8) > 0 {
				w.one(bulkName(i), func(k Key) { w.tx.Delete(k) })
			}
		}
	},
	func(w *walk) {
		for range 100 {
			w.bulkCall(func(k Key) {
				switch w.IntN(4) {
				case 0:
					_, _ = w.tx.Append(k, w.value())
				case 1:
					_, _ = w.tx.Move(k, w.IntN(walkDatabases))
				case 2:
					w.tx.Expire(k, w.bulkDeadline(), 0)
				case 3:
					_, _ = w.tx.Fixed(k, limit.Fixed{Limit: 5, Window: limit.Every(1000)}, 1)
				}
			})
		}
	},
	func(w *walk) { // renames and copies across all shards
		for range 50 {
			keys := []Key{w.e.Key(bulkName(w.IntN(bulkKeys))), w.e.Key(bulkName(w.IntN(bulkKeys)))}
			w.write(keys, func(k []Key) []any { return answer(w.tx.Rename(k[0], k[1])) })
			w.write(keys, func(k []Key) []any { return answer(w.tx.Copy(k[1], k[0], w.IntN(walkDatabases), true)) })
		}
	},
	func(w *walk) { w.largeHash(func(i int) bool { return true }) },
	func(w *walk) { w.largeHash(func(i int) bool { return i%3 == 0 }) },
	func(w *walk) {
		var fields [][]byte
		for i := range 4 * object.SmallHash {
			if w.IntN(3) == 0 {
				fields = append(fields, fmt.Appendf(nil, "f%d", i))
			}
		}
		w.write(w.some("h", 1), func(k []Key) []any { return answer(w.tx.HDel(k[0], fields)) })
	},
	func(w *walk) { // a sorted set with several runs
		var members []zset.Member
		for range w.IntN(3 * object.SmallCount) {
			members = append(
				members,
				zset.Member{Member: fmt.Appendf(nil, "m%d", w.IntN(1000)), Score: float64(w.IntN(50))},
			)
		}
		w.write(w.some("z", 1), func(k []Key) []any { return answer(w.tx.ZAdd(k[0], 0, members)) })
	},
	func(w *walk) { // a sorted set with few long members
		members := []zset.Member{
			{Member: bytes.Repeat([]byte("x"), object.SmallBytes), Score: 1},
			{Member: bytes.Repeat([]byte("y"), object.SmallBytes), Score: 2},
		}
		w.write(w.some("z", 1), func(k []Key) []any { return answer(w.tx.ZAdd(k[0], 0, members)) })
	},
	func(w *walk) {
		w.write(
			w.some("s", 1),
			func(k []Key) []any {
				return answer(w.tx.Append(k[0], bytes.Repeat(w.value(), object.SmallBytes/3)))
			},
		)
	},
	func(w *walk) {
		w.write(
			w.some("s", 1),
			func(k []Key) []any {
				return answer(w.tx.SetRange(k[0], w.Int64N(3*object.SmallBytes), w.value()))
			},
		)
	},
}

const bulkKeys = 1000

func bulkName(i int) []byte { return fmt.Appendf(nil, "bulk:%d", i) }

// bulkCall makes a call on one of many keys.
func (w *walk) bulkCall(call func(k Key)) { w.one(bulkName(w.IntN(bulkKeys)), call) }

func (w *walk) one(name []byte, call func(k Key)) {
	k := w.e.Key(name)
	w.tx.Begin(w.now, w.db, []Key{k}, true)
	defer w.tx.End()
	call(k)
}

func (w *walk) bulkDeadline() int64 {
	if w.IntN(2) == 0 {
		return 0
	}
	return w.deadline()
}

func (w *walk) largeHash(has func(i int) bool) {
	var pairs [][]byte
	for i := range object.SmallHash + w.IntN(3*object.SmallHash) {
		if has(i) {
			pairs = append(pairs, fmt.Appendf(nil, "f%d", i), w.value())
		}
	}
	w.write(w.some("h", 1), func(k []Key) []any { return answer(w.tx.HSet(k[0], pairs)) })
}

// passTime makes some calls, and sometimes a bulk change.
func (w *walk) passTime() {
	w.steps(w.IntN(25))
	if w.IntN(2) == 0 {
		bulkChanges[w.IntN(len(bulkChanges))](w)
	}
}

// A snapshot is the state at one point in time, and with the log since then it gives the state of
// the engine, whatever calls are made while it is taken.
func TestSnapshotIsConsistent(t *testing.T) {
	finished, longest := 0, 0
	for range 6 {
		seed := rand.Uint64()
		t.Log("seed", seed)
		w := newWalk(seed, Options{Shards: 2, Seed: [2]uint64{seed, 4}})
		for range 6 {
			for range 1 + w.IntN(12) {
				w.passTime()
			}
			r := restore(t, w.e, w.log)
			abort, interval := w.IntN(6) == 0, 1+w.IntN(8)
			for steps := 0; r.step(); steps++ {
				longest = max(longest, steps)
				if abort && steps > 4 {
					break
				}
				if w.IntN(interval) == 0 {
					w.passTime()
				}
			}
			if w.e.snapshot == nil {
				r.finish()
				r.catchUp(w.e, w.log)
				finished++
			}
			r.s.Close()
			requireNoTrace(t, w.e)
		}
		requireSound(t, w.e)
	}
	assert.Greater(t, finished, 6)
	assert.Greater(t, longest, 8, "a snapshot has enough steps for calls in between")
}

// requireNoTrace checks that an engine keeps nothing of a snapshot that has ended.
func requireNoTrace(t testing.TB, e *Engine) {
	require.Nil(t, e.snapshot)
	for i := range e.shards {
		for _, s := range e.shards[i].dbs {
			require.Nil(t, s.walk)
		}
	}
}

// A snapshot can be taken of an engine that applies a log.
func TestSnapshotOfReplica(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	w := newWalk(seed, Options{Shards: 4})
	for range 60 {
		w.passTime()
	}
	replica := New(Options{Databases: walkDatabases, Shards: 2})
	var r *restoring
	for i, call := range w.log.calls {
		require.NoError(t, replica.Apply(0, call))
		switch {
		case r == nil && w.IntN(100) == 0:
			r = restore(t, replica, nil)
		case r != nil && w.IntN(20) == 0 && !r.step():
			r.finish()
			r.log = i + 1
			r = nil
		}
	}
	require.Equal(t, dump(w.e), dump(replica))
}

// Other goroutines make calls and sweep while snapshots are taken.
func TestSnapshotDuringCalls(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	w := newWalk(seed, Options{Shards: 8})
	var stop atomic.Bool
	var callers sync.WaitGroup
	for i := range uint64(3) {
		concurrent := &walk{
			Rand:    rand.New(rand.NewPCG(seed, 2+i)),
			e:       w.e,
			tx:      w.e.NewTx(),
			sweeper: w.e.NewSweeper(),
			log:     w.log,
			now:     epoch,
		}
		callers.Go(func() {
			for !stop.Load() {
				concurrent.passTime()
			}
		})
	}
	var taken []*restoring
	for range 5 {
		w.passTime()
		r := restore(t, w.e, w.log)
		for r.step() {
			w.steps(1)
		}
		r.finish()
		taken = append(taken, r)
	}
	stop.Store(true)
	callers.Wait()
	requireSound(t, w.e)
	for _, r := range taken {
		r.catchUp(w.e, w.log)
	}
}

// A walk needs no entry before its position, and of those after it only the version before the
// first change.
func TestPassageKeepsOvertakenEntries(t *testing.T) {
	const unit = 1 << 32 // between two positions
	var p dict.Passage
	assert.True(t, p.Overtake(0))
	assert.False(t, p.Overtake(0), "again")
	p.Reach(5)
	assert.False(t, p.Overtake(5*unit-1), "the last of those walked")
	assert.True(t, p.Overtake(5*unit), "the next")
	assert.True(t, p.Overtake(5*unit+1), "another at this position")
	assert.True(t, p.PassesBy(5*unit))
	assert.False(t, p.Ahead(5*unit))
	assert.False(t, p.PassesBy(5*unit-1))
	p.Forget(5 * unit)
	assert.True(t, p.PassesBy(5*unit+1))
	assert.True(t, p.Ahead(5*unit))
	assert.True(t, p.Overtake(5*unit), "a new one")
	assert.False(t, p.Over())
	p.Reach(0)
	assert.True(t, p.Over())
	assert.False(t, p.Overtake(math.MaxUint64), "late")
	assert.Zero(t, p.Overtaken())
}

// The effects for each type of object. Expired keys have none.
func TestSnapshotEffects(t *testing.T) {
	b := newKeyspace(t)
	late := int64(epoch + 50)
	b.set("gone", "v", epoch-1)
	b.db = 2
	b.set("s", "v", late)
	b.do(func(k []Key) {
		_, _ = b.tx.HSet(k[0], [][]byte{[]byte("f"), []byte("1"), []byte("g"), []byte("2")})
	}, "h")
	b.do(func(k []Key) { b.tx.Expire(k[0], late, 0) }, "h")
	b.do(func(k []Key) {
		_, _, _ = b.tx.ZAdd(k[0], 0, []zset.Member{{Member: []byte("m"), Score: 2}, {Member: []byte("l"), Score: 1}})
	}, "z")
	b.do(func(k []Key) { _, _ = b.tx.Token(k[0], limit.Bucket{Capacity: 2, Refill: 1, Period: 1000}, 1) }, "t")
	b.do(func(k []Key) { _, _ = b.tx.Fixed(k[0], limit.Fixed{Limit: 2, Window: limit.Every(1000)}, 1) }, "f")

	var reported []string
	s := b.e.Snapshot(func() {})
	for s.Step(func(effects []effect.Effect) {
		for _, f := range effects {
			reported = append(reported, fmt.Sprintf("%d %s: %d %s=%s %v @%d %v %v", f.DB, f.Key.Name, f.Kind, f.Field,
				f.Value, f.Score, f.ExpireAt, f.Tokens, f.Count))
		}
	}) {
	}
	slices.SortStableFunc(reported, func(a, b string) int { return strings.Compare(a[:3], b[:3]) })
	none, noTokens, noCount := "@0", fmt.Sprint(limit.Tokens{}), fmt.Sprint(limit.Count{})
	plain := " " + noTokens + " " + noCount
	tokens, count := b.log.calls[len(b.log.calls)-2][0], b.log.calls[len(b.log.calls)-1][0]
	assert.Equal(t, []string{
		fmt.Sprintf("2 f: %d = 0 @%d %v %v", effect.Window, count.ExpireAt, noTokens, count.Count),
		fmt.Sprintf("2 h: %d f=1 0 %s", effect.HashSet, none+plain),
		fmt.Sprintf("2 h: %d g=2 0 %s", effect.HashSet, none+plain),
		fmt.Sprintf("2 h: %d = 0 @%d", effect.Expire, late) + plain,
		fmt.Sprintf("2 s: %d =v 0 @%d", effect.String, late) + plain,
		fmt.Sprintf("2 t: %d = 0 @%d %v %v", effect.Bucket, tokens.ExpireAt, tokens.Tokens, noCount),
		fmt.Sprintf("2 z: %d l= 1 %s", effect.Add, none+plain),
		fmt.Sprintf("2 z: %d m= 2 %s", effect.Add, none+plain),
	}, reported)
}

// A key that has expired at the time of the snapshot is not part of it, but its deletion is in the
// log after it.
func TestLogDeletesKeysExpiredAtSnapshot(t *testing.T) {
	b := newKeyspace(t)
	b.set("a", "1", epoch+1)
	b.set("b", "1", epoch+1)
	b.now += 2
	b.set("c", "1", 0)
	r := restore(t, b.e, b.log)
	b.set("a", "2", 0) // replaces an expired key
	b.do(func(k []Key) { b.tx.Delete(k[0]) }, "b")
	for r.step() {
	}
	r.finish()
	r.catchUp(b.e, b.log)
	assert.Len(t, dump(r.copy), 2)
}

func TestOnlyOneSnapshotAtATime(t *testing.T) {
	b := newKeyspace(t)
	b.set("a", "1", 0)
	s := b.e.Snapshot(func() {})
	assert.Panics(t, func() { b.e.Snapshot(func() { t.Error("the second snapshot has begun") }) })
	done, total := s.Keys()
	assert.Equal(t, []int64{0, 1}, []int64{done, total})
	b.set("a", "2", 0)
	s.Close()
	s.Close()
	requireNoTrace(t, b.e)
	assert.False(t, s.Step(func([]effect.Effect) { t.Error("closed") }))

	r := restore(t, b.e, b.log)
	for r.step() {
	}
	r.finish()
	requireNoTrace(t, b.e)
	r = restore(t, New(Options{}), nil) // empty
	require.False(t, r.step())
	r.finish()
}

// A large object is visited in parts, and completely although it changes and is deleted meanwhile;
// its deadline comes last.
func TestSnapshotOfLargeCollections(t *testing.T) {
	const elements = 5000
	nameOf := func(i int) []byte { return fmt.Appendf(nil, "%0100d", i) }
	b := newKeyspace(t)
	b.do(func(k []Key) {
		for i := range elements {
			name := nameOf(i)
			_, err := b.tx.HSet(k[0], [][]byte{name, name})
			require.NoError(t, err)
			_, _, err = b.tx.ZAdd(k[1], 0, []zset.Member{{Member: name, Score: float64(i)}})
			require.NoError(t, err)
		}
		b.tx.Expire(k[0], epoch+1000, 0)
		b.tx.Expire(k[1], epoch+1000, 0)
	}, "h", "z")
	r := restore(t, b.e, b.log)
	last, parts := make(map[string]effect.Kind), 0
	for i := 0; r.s.Step(func(effects []effect.Effect) {
		parts++
		assert.LessOrEqual(t, len(effect.AppendAll(nil, effects)), object.StepBytes+object.SmallBytes)
		last[string(effects[0].Key.Name)] = effects[len(effects)-1].Kind
		r.visit(effects)
	}); i++ {
		b.do(func(k []Key) {
			for j := i; j < elements; j += 100 {
				name := nameOf(j)
				_, _ = b.tx.HSet(k[0], [][]byte{name, []byte("new"), append(name, 'n'), name})
				_, _ = b.tx.HDel(k[0], [][]byte{nameOf(elements - j)})
				_, _ = b.tx.ZRem(k[1], [][]byte{name})
			}
			if i == 8 {
				require.NoError(t, b.tx.Rename(k[0], k[2]))
				b.tx.Delete(k[1])
			}
		}, "h", "z", "other")
	}
	r.finish()
	r.catchUp(b.e, b.log)
	b.do(func(k []Key) {
		_, _ = b.tx.HSet(k[0], [][]byte{[]byte("f"), []byte("after")})
		assert.Empty(t, object.HashIn(b.tx.lookup(k[0])).Fields.Many.Frozen, "the next change drops the walk")
	}, "other")
	assert.Greater(t, parts, 10)
	assert.Equal(t, map[string]effect.Kind{"h": effect.Expire, "z": effect.Expire}, last)
}

// Small collections are visited whole, also those that exceed the size of a step together with
// others, whether the walk reaches them or a change saves them.
func TestSnapshotOfManySmallCollections(t *testing.T) {
	b := newKeyspace(t)
	elements := func(n, size int) (list [][]byte) {
		for i := range n {
			list = append(list, fmt.Appendf(nil, "%0*d", size, i))
		}
		return list
	}
	l := Limit{Rule: *mustParse("p", "TOKEN 1000000 1000000 1m").Rule(), Cost: 1}
	var names []string
	const keys = 200
	for i := range keys {
		names = append(names, fmt.Sprint("list", i), fmt.Sprint("set", i), fmt.Sprint("few", i), fmt.Sprint("held", i))
		b.do(func(k []Key) {
			b.tx.Insert(k[0], object.TypeList, 0, elements(100, 30)...)
			b.tx.Insert(k[1], object.TypeSet, 0, elements(100, 30)...)
			b.tx.Insert(k[2], object.TypeSet, 0, elements(5, 10_000)...)
			for j := range 100 {
				l.Key, l.Hold = k[3], reserve.Request{Call: fmt.Append(nil, j), TTL: 1000}
				_, err := b.tx.Decide(&l)
				require.NoError(t, err)
			}
		}, names[4*i:]...)
	}
	r := restore(t, b.e, b.log)
	for i := 0; r.s.Step(r.visit); i++ {
		for j := i * 40; j < min(len(names), (i+1)*40); j++ { // half of them before the walk does
			b.do(func(k []Key) { b.tx.Delete(k[0]) }, names[len(names)-1-j])
		}
	}
	r.finish()
	r.catchUp(b.e, b.log)
}

// Members of a client with the last numbers that hits of a millisecond can have.
func TestSnapshotOfLastHits(t *testing.T) {
	for _, n := range []uint64{1, effect.ManyHits - 1, effect.ManyHits, effect.ManyHits + 1, 300} {
		b := newKeyspace(t)
		for i := range n {
			f := effect.Effect{Kind: effect.Add, Key: Key{Name: []byte("k")}, Score: 1}
			f.Field = effect.Hits{At: 1}.Member(nil, zset.MaxSeq-i)
			require.NoError(t, b.e.Apply(0, []effect.Effect{f}))
		}
		r := restore(t, b.e, b.log)
		for r.s.Step(r.visit) {
		}
		r.finish()
	}
}

// A packed hash of a few hundred fields changes after the walk has reached it and before it is
// visited.
func TestSnapshotOfMediumHash(t *testing.T) {
	b := newKeyspace(t)
	fields := func(value string) (pairs [][]byte) {
		for i := range object.SmallCount + 100 {
			pairs = append(pairs, fmt.Append(nil, i), []byte(value))
		}
		return pairs
	}
	b.do(func(k []Key) { _, _ = b.tx.HSet(k[0], fields("old")) }, "h")
	r := restore(t, b.e, b.log)
	require.True(t, r.step())
	require.Empty(t, r.seen, "the walk has reached it, but not visited it")
	b.do(func(k []Key) {
		_, _ = b.tx.HSet(k[0], fields("new"))
		_, _ = b.tx.HDel(k[0], [][]byte{[]byte("7")})
	}, "h")
	for r.step() {
	}
	r.finish()
	r.catchUp(b.e, b.log)
}

// The changes between two steps may keep many batches of old versions.
func TestSnapshotWhileAllKeysChange(t *testing.T) {
	const keys = 10_000
	b := newKeyspace(t)
	tokens(b.e, keys)
	r := restore(t, b.e, b.log)
	for i := range keys {
		b.do(func(k []Key) { b.tx.Delete(k[0]) }, fmt.Sprintf("key:%d", i))
	}
	require.Greater(t, len(r.s.Kept()), 2)
	for r.step() {
	}
	r.finish()
	r.catchUp(b.e, b.log)
	assert.Len(t, r.want, keys)
}

// A long string is not copied for a snapshot, but before its bytes are overwritten.
func TestSnapshotSharesLongStrings(t *testing.T) {
	b := newKeyspace(t)
	long := strings.Repeat("x", 3*object.SmallBytes)
	for _, change := range []func(k Key){
		func(k Key) { _, _ = b.tx.SetRange(k, 1, []byte("yy")) },
		func(k Key) { _, _ = b.tx.Append(k, []byte("yy")); _, _ = b.tx.SetRange(k, 0, []byte("z")) },
		func(k Key) { b.tx.Set(k, []byte(strings.Repeat("y", len(long))), SetMode{}) },
		func(k Key) { b.tx.Expire(k, epoch+9, 0); _, _ = b.tx.SetRange(k, 2, []byte("yy")) },
		func(k Key) { b.tx.Delete(k) },
	} {
		b.set("k", long, 0)
		for _, ahead := range []bool{true, false} {
			b.do(func(k []Key) { b.tx.Set(k[0], []byte(long), SetMode{}) }, "k")
			s := b.e.Snapshot(func() {})
			step := func() {
				s.Step(func(effects []effect.Effect) {
					if !ahead {
						b.do(func(k []Key) { change(k[0]) }, "k")
					}
					require.Equal(t, long, string(effects[0].Value))
				})
			}
			if ahead {
				b.do(func(k []Key) { change(k[0]) }, "k")
			}
			step()
			s.Close()
		}
	}
}

func BenchmarkSnapshot(b *testing.B) {
	const keys = 1_000_000
	e := New(Options{})
	tokens(e, keys)
	var longest time.Duration
	visited := 0
	b.ReportAllocs()
	for b.Loop() {
		s := e.Snapshot(func() {})
		for more := true; more; {
			begun := time.Now()
			more = s.Step(func([]effect.Effect) { visited++ })
			longest = max(longest, time.Since(begun))
		}
	}
	b.ReportMetric(float64(visited)/b.Elapsed().Seconds(), "keys/s")
	b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
}
