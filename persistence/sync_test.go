package persistence

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/internal/storage"
)

// virtual runs a test in virtual time, with a world on a disk in memory that uses this time and
// never begins a second segment by itself.
func virtual(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newDisk(), 0)
		w.o.Clock = func() int64 { return time.Now().UnixMilli() }
		w.o.segment = 0
		test(w)
	})
}

// set makes a call that sets a key to a new value of about size bytes, and returns the position to
// wait for.
func (w *world) set(name string, size int) engine.Position {
	value := strconv.AppendInt(make([]byte, size), w.now.Add(1), 10)
	k := w.e.Key([]byte(name))
	tx := w.e.NewTx()
	tx.Begin(w.o.Clock(), 0, []engine.Key{k}, true)
	tx.Set(k, value, engine.SetMode{})
	return tx.End()
}

// syncs counts the syncs of the log.
func (d *disk) syncs() (n int) {
	for _, what := range d.operations() {
		if strings.HasPrefix(what, "sync 0") && strings.HasSuffix(what, ".log") {
			n++
		}
	}
	return n
}

// onDisk reports whether a text is durable on the disk.
func (d *disk) onDisk(text string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, file := range d.durable {
		if bytes.Contains(file.data[:file.synced], []byte(text)) {
			return true
		}
	}
	return false
}

// Each call is durable within a second, for random patterns of calls.
func TestSyncEverySecondIsDurableWithinASecond(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	virtual(t, func(w *world) {
		r := rand.New(rand.NewPCG(seed, 0))
		require.True(t, w.start(storage.SyncEverySecond))
		var checks sync.WaitGroup
		start := time.Now()
		for i := range 300 {
			name := fmt.Sprintf("<key %d>", i)
			require.NoError(t, w.store.Wait(w.set(name, r.IntN(10)/9*r.IntN(2*wakeBacklog))))
			checks.Go(func() {
				time.Sleep(time.Second + 1)
				require.True(t, w.disk.onDisk(name), name)
			})
			switch r.IntN(4) {
			case 0:
				time.Sleep(time.Duration(r.Int64N(int64(3 * time.Second))))
			case 1:
				time.Sleep(time.Duration(r.Int64N(int64(writeDelay))))
			}
		}
		checks.Wait()
		took := time.Since(start)
		require.LessOrEqual(t, w.disk.syncs(), int(took/syncInterval)+2, "in %v", took)
		w.stop()
	})
}

func TestSyncNeverSyncsOnlyWholeSegments(t *testing.T) {
	virtual(t, func(w *world) {
		w.o.segment = 10_000
		require.True(t, w.start(storage.SyncNever))
		begun := w.disk.syncs()
		for range 9 {
			require.NoError(t, w.store.Wait(w.set("k", 1000)))
			time.Sleep(time.Minute)
		}
		require.Equal(t, begun, w.disk.syncs())
		require.NoError(t, w.store.Wait(w.set("k", 1000)))
		time.Sleep(time.Minute)
		require.Equal(t, begun+2, w.disk.syncs(), "the segment that ends and the one that begins")
		w.set("last", 0)
		w.stop()
		require.True(t, w.disk.onDisk("last"))
	})
}

// No call is acknowledged before it is durable, and calls that wait at the same time share a sync.
func TestSyncAlwaysAcknowledgesDurableCalls(t *testing.T) {
	virtual(t, func(w *world) {
		require.True(t, w.start(storage.SyncAlways))
		begun := w.disk.syncs()
		w.disk.slowDown(ofLog, 10*time.Millisecond)
		var calls sync.WaitGroup
		for i := range 500 {
			calls.Go(func() {
				name := fmt.Sprintf("<key %d>", i)
				position := w.set(name, 0)
				require.False(t, w.disk.onDisk(name))
				require.NoError(t, w.store.Wait(position))
				require.True(t, w.disk.onDisk(name), name)
			})
		}
		calls.Wait()
		require.LessOrEqual(t, w.disk.syncs()-begun, 3)
		time.Sleep(time.Hour)
		idle := w.disk.syncs()
		require.LessOrEqual(t, idle-begun, 3, "data that is on the disk is not synced again")
		require.NoError(t, w.store.Wait(0))
		w.stop()
	})
}

// Calls that wait in one sync mode continue in the next.
func TestSyncModeChangesWhileCallsWait(t *testing.T) {
	virtual(t, func(w *world) {
		require.True(t, w.start(storage.SyncAlways))
		w.disk.slowDown(ofLog, time.Hour)
		start := time.Now()
		var calls sync.WaitGroup
		for i := range 20 {
			calls.Go(func() { require.NoError(t, w.store.Wait(w.set(fmt.Sprint(i), 0))) })
		}
		time.Sleep(time.Minute)
		w.store.Configure(storage.Settings{Sync: storage.SyncEverySecond})
		calls.Wait()
		require.Equal(t, time.Minute, time.Since(start))

		w.disk.slowDown(ofLog, 0)
		time.Sleep(3 * time.Hour)
		w.store.Configure(storage.Settings{Sync: storage.SyncNever})
		position := w.set("late", 0)
		require.NoError(t, w.store.Wait(position))
		time.Sleep(time.Minute)
		require.False(t, w.disk.onDisk("late"))
		w.store.Configure(storage.Settings{Sync: storage.SyncAlways})
		require.NoError(t, w.store.Wait(position))
		require.True(t, w.disk.onDisk("late"))
		w.stop()
	})
}

// Calls wait when too much waits to be written.
func TestSlowDiskDelaysCalls(t *testing.T) {
	virtual(t, func(w *world) {
		require.True(t, w.start(storage.SyncEverySecond))
		w.disk.slowDown(ofLog, time.Hour)
		start := time.Now()
		size := 0
		for size < maxBacklog-2<<20 {
			size += 1 << 20
			require.NoError(t, w.store.Wait(w.set("k", 1<<20)))
		}
		require.Zero(t, time.Since(start))
		require.GreaterOrEqual(t, w.store.Status().Backlog, int64(size))
		for range 2 {
			require.NoError(t, w.store.Wait(w.set("k", 1<<20)))
		}
		require.GreaterOrEqual(t, time.Since(start), time.Hour)
		w.stop()
	})
}

// While the disk hangs, only the changes of the first two seconds are acknowledged. They can be
// read. Calls go on when the disk answers.
func TestHungDiskHoldsCalls(t *testing.T) {
	for _, mode := range []storage.SyncMode{storage.SyncEverySecond, storage.SyncNever} {
		virtual(t, func(w *world) {
			logged := new(lines)
			w.o.Log = slog.New(logged)
			require.True(t, w.start(mode))
			const hangs = 10 * time.Second
			w.disk.slowDown(ofLog, hangs)
			start, first := time.Now(), w.set("first", 0)
			var calls sync.WaitGroup
			time.Sleep(50 * time.Millisecond)
			for i := range 50 {
				begun := time.Since(start)
				calls.Go(func() {
					name := fmt.Sprintf("<key %d>", i)
					require.NoError(t, w.store.Wait(w.set(name, 0)))
					if begun < lateAfter {
						require.Equal(t, begun, time.Since(start))
						return
					}
					require.GreaterOrEqual(t, time.Since(start), hangs)
					require.Less(t, time.Since(start), hangs+time.Second)
					require.Equal(t, mode == storage.SyncEverySecond, w.disk.onDisk(name))
				})
				if begun < lateAfter {
					require.NoError(t, w.store.Stalled())
				} else {
					require.NoError(t, w.store.Wait(first))
					require.Equal(t, begun, time.Since(start), "a read does not wait")
					want := fmt.Sprintf("the disk of  has not answered for %v: changes wait", begun.Round(time.Second))
					require.EqualError(t, w.store.Stalled(), want)
					require.EqualError(t, w.store.Status().Stalled, want)
				}
				time.Sleep(100 * time.Millisecond)
			}
			w.disk.slowDown(ofLog, 0)
			calls.Wait()
			synctest.Wait()
			require.NoError(t, w.store.Stalled())
			require.Equal(t, 1, logged.with("the disk does not answer"))
			require.Equal(t, 1, logged.with("the disk answers again"))
			begun := time.Now()
			require.NoError(t, w.store.Wait(w.set("later", 0)))
			require.Equal(t, begun, time.Now())
			w.stop()
		})
	}
}

// When a call is acknowledged, all changes older than two seconds are durable, however slow the
// disk is.
func TestSlowDiskLosesNoMoreThanTwoSeconds(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	virtual(t, func(w *world) {
		r := rand.New(rand.NewPCG(seed, 0))
		require.True(t, w.start(storage.SyncEverySecond))
		var calls sync.WaitGroup
		var waited atomic.Int64
		var begun [500]time.Time
		for i := range begun {
			if r.IntN(30) == 0 {
				w.disk.slowDown(ofLog, time.Duration(r.Int64N(int64(3*time.Second))))
			}
			begun[i] = time.Now()
			position := w.set(fmt.Sprintf("<key %d>", i), r.IntN(20)/19*wakeBacklog)
			calls.Go(func() {
				require.NoError(t, w.store.Wait(position))
				if time.Since(begun[i]) > 0 {
					waited.Add(1)
				}
				older := i
				for older > 0 && time.Since(begun[older]) <= lateAfter {
					older--
				}
				durable := older == 0 || w.disk.onDisk(fmt.Sprintf("<key %d>", older))
				require.True(t, durable, "%d is acknowledged, %d is not durable", i, older)
			})
			time.Sleep(time.Duration(r.Int64N(int64(200 * time.Millisecond))))
		}
		calls.Wait()
		require.NotZero(t, waited.Load())
		w.stop()
	})
}

// A disk that is full has answered.
func TestFullDiskIsNotStalled(t *testing.T) {
	virtual(t, func(w *world) {
		require.True(t, w.start(storage.SyncEverySecond))
		w.disk.fill(1, 40, failOnce)
		w.set("k", 0)
		for range 90 {
			time.Sleep(100 * time.Millisecond)
			require.NoError(t, w.store.Stalled())
		}
		require.Error(t, w.store.Full())
		time.Sleep(2 * time.Second)
		require.NoError(t, w.store.Full())
		w.stop()
	})
}

// A denied call writes nothing to the disk.
func TestDeniedCallsWriteNothing(t *testing.T) {
	virtual(t, func(w *world) {
		require.True(t, w.start(storage.SyncAlways))
		k := w.e.Key([]byte("k"))
		slide := func(cost int64) (limit.Decision, engine.Position) {
			w.tx.Begin(w.o.Clock(), 0, []engine.Key{k}, true)
			d, err := w.tx.Slide(k, []limit.Window{{Limit: 5, Length: hour}}, cost, nil)
			require.NoError(t, err)
			return d, w.tx.End()
		}
		_, last := slide(5)
		require.NoError(t, w.store.Wait(last))
		time.Sleep(time.Second)
		before, size := w.disk.operations(), w.store.Status().LogBytes
		for cost := range int64(6) {
			d, position := slide(cost)
			require.False(t, d.Allowed)
			require.Equal(t, last, position, "the position of the call before it")
		}
		time.Sleep(time.Minute)
		require.Equal(t, before, w.disk.operations())
		require.Equal(t, size, w.store.Status().LogBytes)
		w.stop()
	})
}

// lines keeps what is logged.
type lines struct {
	slog.Handler
	mu   sync.Mutex
	text []string
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, r.Message)
	return nil
}

// with counts the lines with a word in them.
func (l *lines) with(word string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.text {
		if strings.Contains(line, word) {
			n++
		}
	}
	return n
}

// A failure is final: nothing is written after it, and the server's log reports the consequence.
func TestFailureIsFinal(t *testing.T) {
	for _, continues := range []bool{false, true} {
		for _, mode := range []failure{failOnce, failTorn} {
			t.Run(fmt.Sprintf("continue %v, %s", continues, failures[mode]), func(t *testing.T) {
				virtual(t, func(w *world) {
					logged := new(lines)
					w.o.Log, w.o.Settings.Continue = slog.New(logged), continues
					require.True(t, w.start(storage.SyncAlways))
					require.NoError(t, w.store.Wait(w.set("before", 0)))
					kept := w.set("kept", 0)
					require.NoError(t, w.store.Wait(kept))
					require.NoError(t, w.store.Refuses())
					w.disk.mode = mode
					w.disk.fail()
					requireWait(t, continues, w.store.Wait(w.set("lost", 0)))
					// the writer wakes calls before it closes the file and logs the failure
					synctest.Wait()
					require.ErrorIs(t, w.store.Failure(), errDisk)
					require.ErrorIs(t, w.store.Status().Failure, errDisk)
					requireWait(t, continues, w.store.Refuses())
					require.Equal(t, 1, logged.with("the log has failed and is closed"))

					before := w.disk.operations()
					for range 10 {
						requireWait(t, continues, w.store.Wait(w.set("k", wakeBacklog)))
						time.Sleep(59 * time.Second)
					}
					require.NoError(t, w.store.Wait(kept), "changes that were on the disk before are durable")
					require.Equal(t, before, w.disk.operations())
					reminders := 0
					if continues {
						reminders = 9
					}
					require.Equal(t, reminders, logged.with("in memory alone, because the log has failed"))

					w.store.Configure(storage.Settings{Sync: storage.SyncEverySecond, Continue: !continues})
					requireWait(t, !continues, w.store.Wait(w.set("k", 0)))
					requireWait(t, !continues, w.store.Refuses())
					require.ErrorIs(t, w.store.Close(), errDisk)
					require.Equal(t, before, w.disk.operations())

					w.disk.failAt = 0
					require.True(t, w.start(storage.SyncAlways))
					require.True(t, strings.Contains(stateOf(w.e), "kept"))
					w.stop()
				})
			})
		}
	}
}

func requireWait(t *testing.T, continues bool, err error) {
	t.Helper()
	if continues {
		require.NoError(t, err)
	} else {
		require.ErrorIs(t, err, errDisk)
	}
}

// All calls that wait when the log fails return the error.
func TestFailureWakesWaitingCalls(t *testing.T) {
	virtual(t, func(w *world) {
		require.True(t, w.start(storage.SyncAlways))
		w.disk.slowDown(ofLog, time.Hour)
		var calls sync.WaitGroup
		for i := range 20 {
			calls.Go(func() { require.ErrorIs(t, w.store.Wait(w.set(fmt.Sprint(i), 0)), errDisk) })
		}
		calls.Go(func() { require.ErrorIs(t, w.store.Snapshot(), errDisk) })
		time.Sleep(time.Minute)
		w.disk.fail()
		calls.Wait()
		require.ErrorIs(t, w.store.Close(), errDisk)
	})
}

// After a failure a snapshot can still store the state, and a start loads it.
func TestSnapshotAfterFailure(t *testing.T) {
	virtual(t, func(w *world) {
		w.o.Settings.Continue = true
		require.True(t, w.start(storage.SyncAlways))
		require.NoError(t, w.store.Wait(w.set("one", 0)))
		w.disk.fail()
		require.NoError(t, w.store.Wait(w.set("two", 0)))
		require.Error(t, w.store.Failure())
		w.set("three", 0)
		for range 3 {
			require.NoError(t, w.store.Snapshot())
		}
		state := stateOf(w.e)
		require.Error(t, w.store.Close())
		require.True(t, w.start(storage.SyncAlways))
		require.Equal(t, state, stateOf(w.e))
		require.NoError(t, w.store.Wait(w.set("four", 0)))
		state = stateOf(w.e)
		w.stop()
		require.True(t, w.start(storage.SyncAlways))
		require.Equal(t, state, stateOf(w.e))
		w.stop()
	})
}

// A disk that is full when the server starts is reported in one line that names the file. When
// there is space, the next start succeeds.
func TestFullDiskAtStartIsReported(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "/data/0000000002.log", Err: syscall.ENOSPC}
	for operation := range 4 { // create, header, sync, directory
		virtual(t, func(w *world) {
			require.True(t, w.start(storage.SyncAlways))
			require.NoError(t, w.store.Wait(w.set("k", 0)))
			w.stop()
			// the first operation syncs what was read
			w.disk.why, w.disk.mode, w.disk.failAt = full, failTorn, w.disk.ops+2+operation
			s, err := Open(w.o)
			require.NoError(t, err)
			e := engine.New(engine.Options{Databases: 3, Journal: s})
			_, err = s.Load(e)
			require.NoError(t, err)
			err = s.Start()
			require.ErrorIs(t, err, syscall.ENOSPC)
			require.ErrorContains(t, err, "segment 0000000002.log cannot be")
			require.ErrorContains(t, err, "/data/0000000002.log: no space left on device")
			require.NotContains(t, err.Error(), "\n")
			require.NoError(t, s.Close())
			require.True(t, w.start(storage.SyncAlways))
			require.Contains(t, stateOf(w.e), "key=k")
			w.stop()
		})
	}
}

// Slow syncs are counted.
func TestDelayedSyncsAreCounted(t *testing.T) {
	virtual(t, func(w *world) {
		require.True(t, w.start(storage.SyncAlways))
		for _, slow := range []time.Duration{time.Second, time.Second + 1} {
			w.disk.slowDown(ofLog, slow)
			require.NoError(t, w.store.Wait(w.set("k", 0)))
		}
		w.disk.slowDown(ofLog, 0)
		require.EqualValues(t, 1, w.store.Status().DelayedSyncs)
		w.stop()
		require.True(t, slices.Contains(w.disk.operations(), "sync 0000000001.log"))
	})
}
