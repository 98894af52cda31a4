package persistence

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/effect"
	"rlserver/engine/limit"
	"rlserver/engine/rule"
	"rlserver/internal/storage"
)

const (
	testEpoch = 1767225600000
	hour      = 3600 * 1000 // nothing expires during a test
)

// world is a server without a network: an engine, its store, and the acknowledged calls.
type world struct {
	t      testing.TB
	disk   *disk
	o      Options      // except for what start sets
	now    atomic.Int64 // also read by the writer of the log
	e      *engine.Engine
	store  *Store
	tx     *engine.Tx
	states []string // after 0, 1, 2 … calls, as stateOf returns them
	acked  int      // number of acknowledged calls
}

func newWorld(t testing.TB, d *disk, now int64) *world {
	w := &world{t: t, disk: d}
	w.now.Store(now)
	w.o = Options{AppendOnly: true, Clock: w.now.Load, Log: slog.New(slog.DiscardHandler), fs: d, segment: 400}
	return w
}

// start opens the store on the disk and loads it. It reports whether that succeeded; it may fail
// only because the disk fails.
func (w *world) start(mode storage.SyncMode) bool {
	var err error
	w.o.Settings.Sync = mode
	w.store, err = Open(w.o)
	require.NoError(w.t, err)
	w.e = engine.New(engine.Options{Journal: w.store, Databases: 3, Seed: [2]uint64{uint64(w.now.Load()), 1}})
	w.tx = w.e.NewTx()
	if _, err = w.store.Load(w.e); err == nil {
		err = w.store.Start()
	}
	if err != nil {
		w.allowDiskError(err)
		w.store.Close()
		return false
	}
	return true
}

func (w *world) allowDiskError(err error) {
	if !errors.Is(err, errDisk) && !errors.Is(err, errPower) && !errors.Is(err, syscall.ENOSPC) {
		w.t.Helper()
		require.NoError(w.t, err)
	}
}

// call makes a random change and waits until it is acknowledged or refused.
func (w *world) call(r *rand.Rand) bool {
	name := func() []byte { return fmt.Appendf(nil, "k%d", r.IntN(8)) }
	k := []engine.Key{w.e.Key(name()), w.e.Key(name())}
	w.tx.Begin(w.now.Add(r.Int64N(300)), r.IntN(3), k, true)
	switch r.IntN(8) {
	case 0:
		w.tx.Set(k[0], []byte(strings.Repeat("v", r.IntN(100))), engine.SetMode{})
	case 1:
		bucket := limit.Bucket{Capacity: 10, Refill: 3, Period: hour}
		w.tx.Decide(&engine.Limit{Key: k[0], Rule: rule.Rule{Kind: rule.Token, Token: bucket}, Cost: 1})
	case 2:
		fixed := limit.Fixed{Limit: 10, Window: limit.Every(hour)}
		w.tx.Decide(&engine.Limit{Key: k[0], Rule: rule.Rule{Kind: rule.Fixed, Fixed: fixed}, Cost: 1})
	case 3:
		w.tx.Delete(k[0])
	case 4:
		w.tx.HSet(k[0], [][]byte{name(), name()})
	case 5:
		w.tx.Rename(k[0], k[1])
	default:
		w.tx.Slide(k[0], []limit.Window{{Limit: 20, Length: hour}}, 1+r.Int64N(3), nil)
	}
	position := w.tx.End()
	if position == 0 {
		return true
	}
	w.states = append(w.states, stateOf(w.e))
	if err := w.store.Wait(position); err != nil {
		w.allowDiskError(err)
		return false
	}
	w.acked = len(w.states) - 1
	return true
}

// stateOf returns the state of an engine as text, from a snapshot.
func stateOf(e *engine.Engine) string {
	var lines []string
	s := e.Snapshot(func() {})
	defer s.Close()
	for s.Step(func(effects []effect.Effect) {
		for _, f := range effects {
			for _, f := range singly(f) {
				p := printer{}
				p.effect(&f)
				lines = append(lines, string(p.line))
			}
		}
	}) {
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// singly returns an effect, or instead of runs those that format version 8 has for the hits.
func singly(f effect.Effect) (list []effect.Effect) {
	if f.Kind != effect.Runs {
		return []effect.Effect{f}
	}
	for h := range effect.EachRun(f.Value) {
		if h.N >= effect.ManyHits {
			list = append(list, effect.Effect{Kind: effect.AddHits, DB: f.DB, Key: f.Key, Hits: h})
			continue
		}
		for i := range uint64(h.N) {
			list = append(list, effect.Effect{
				Kind: effect.Add, DB: f.DB, Key: f.Key, Field: h.Member(nil, i), Score: float64(h.At),
			})
		}
	}
	return list
}

// run makes calls, segments and snapshots, stops and starts the store, and makes more calls. It
// ends when the disk fails.
func (w *world) run(r *rand.Rand, mode storage.SyncMode) {
	w.states = []string{""}
	if !w.start(mode) {
		return
	}
	for i := range 40 {
		if !w.call(r) {
			break
		}
		if i == 15 || i == 30 {
			w.allowDiskError(w.store.Snapshot())
		}
	}
	synctest.Wait()
	w.allowDiskError(w.store.Close())
	if w.store.Failure() == nil {
		w.acked = len(w.states) - 1 // an orderly stop syncs
		if w.start(mode) {
			require.Equal(w.t, w.states[len(w.states)-1], stateOf(w.e))
			for range 10 {
				if !w.call(r) {
					break
				}
			}
			w.allowDiskError(w.store.Close())
		}
	}
}

// requireRecovered starts after a crash, and checks that the state is one that existed, with at
// least all acknowledged calls. The power may fail again while the start cleans up after the first
// crash.
func (w *world) requireRecovered(r *rand.Rand, why string) {
	for _, failAt := range []int{0, 1 + r.IntN(6)} {
		again := newWorld(w.t, w.disk.crash(r), w.now.Load())
		again.disk.failAt, again.disk.mode = failAt, powerCut
		if !again.start(storage.SyncAlways) {
			again = newWorld(w.t, again.disk.crash(r), w.now.Load())
			require.True(w.t, again.start(storage.SyncAlways), why)
		}
		at, got := -1, stateOf(again.e)
		for i, state := range w.states {
			if state == got {
				at = i
			}
		}
		require.GreaterOrEqual(w.t, at, w.acked,
			"%s: %d calls were acknowledged, of %d; found:\n%s\nwanted at least:\n%s", why, w.acked, len(w.states)-1,
			got, w.states[w.acked])
		again.allowDiskError(again.store.Close())
	}
}

// some yields 1 to n, or a quarter of these numbers, by chance, with -short.
func some(n int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for k := 1; k <= n; k++ {
			if (!testing.Short() || rand.IntN(4) == 0) && !yield(k) {
				return
			}
		}
	}
}

// The disk fails at each operation in turn, in each way. All calls acknowledged with
// storage.SyncAlways are recovered, and the state is one that existed.
func TestNothingAcknowledgedIsLost(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	ops := 0
	run := func(syncMode storage.SyncMode, failAt int, mode failure) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, uint64(failAt)))
			w := newWorld(t, newDisk(), testEpoch)
			w.disk.failAt, w.disk.mode = failAt, mode
			w.run(rand.New(rand.NewPCG(seed, 1)), syncMode)
			if failAt == 0 {
				ops = w.disk.ops
				require.Greater(t, ops, 50)
			}
			w.requireRecovered(r, fmt.Sprintf("seed %d: operation %d %s", seed, failAt, failures[mode]))
		})
	}
	run(storage.SyncAlways, 0, failOnce)
	for mode := range failures {
		for k := range some(ops) {
			run(storage.SyncAlways, k, mode)
		}
	}
}

// A killed process leaves written data that is not synced. The next process continues from there.
// If the power fails then, nothing is lost that it has acknowledged or loaded.
func TestPowerCutAfterKillLosesNothingFound(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	for round := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, round))
			w := newWorld(t, newDisk(), testEpoch)
			w.states = []string{""}
			require.True(t, w.start(storage.SyncNever))
			for range 10 {
				require.True(t, w.call(r))
			}
			time.Sleep(2 * writeDelay)
			next := newWorld(t, w.disk.killed(), w.now.Load())
			// ends the goroutines; this disk is not used any more
			require.NoError(t, w.store.Close())
			require.True(t, next.start(storage.SyncAlways))
			next.states, next.acked = []string{stateOf(next.e)}, 0
			require.Equal(t, w.states[len(w.states)-1], next.states[0])
			for range r.IntN(10) {
				require.True(t, next.call(r))
			}
			next.requireRecovered(r, fmt.Sprintf("seed %d, round %d", seed, round))
			require.NoError(t, next.store.Close())
		})
	}
}
