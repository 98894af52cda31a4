package persistence

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/internal/storage"
)

var errFull = &os.PathError{Op: "write", Path: "/data/log", Err: syscall.ENOSPC}

// fill makes the disk full for some writes, from a later operation on.
func (d *disk) fill(after, writes int, mode failure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fullAt, d.fullFor, d.mode = d.ops+after, writes, mode
}

// makeCalls makes calls until n have succeeded, as a client that retries when changes are refused.
func (w *world) makeCalls(r *rand.Rand, calls int) {
	for done := 0; done < calls; {
		if why := w.store.Refuses(); why != nil { // called once, as it may change meanwhile
			require.ErrorIs(w.t, why, syscall.ENOSPC)
			require.NoError(w.t, w.store.Failure())
			time.Sleep(retryInterval / 2)
			continue
		}
		w.call(r)
		done++
		w.now.Add(1)
		time.Sleep(time.Duration(r.Int64N(int64(2 * writeDelay))))
		if done%15 == 0 {
			w.allowDiskError(w.store.Snapshot())
		}
	}
}

// The disk becomes full at each operation in turn, for some writes, of which it writes nothing or
// half. Everything in memory is written when there is space: a start loads the whole state, and
// after a power failure everything acknowledged with storage.SyncAlways.
func TestWritesResumeAfterFullDisk(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	for _, syncMode := range []storage.SyncMode{storage.SyncAlways, storage.SyncEverySecond} {
		for _, mode := range []failure{failOnce, failTorn} {
			for _, writes := range []int{1, 4} {
				full, tried := 0, 0
				for k := range some(60) {
					tried++
					synctest.Test(t, func(t *testing.T) {
						w, logged := newWorld(t, newDisk(), testEpoch), new(lines)
						w.o.Log = slog.New(logged)
						w.states = []string{""}
						require.True(t, w.start(syncMode))
						w.disk.fill(k, writes, mode)
						w.makeCalls(rand.New(rand.NewPCG(seed, 1)), 40)
						time.Sleep(2 * time.Second)
						w.disk.fill(0, 0, mode) // in case the disk did not become full
						require.NoError(t, w.store.Full())
						require.Equal(t, logged.with("disk is full"), logged.with("nothing is lost"))
						full += logged.with("disk is full")
						if syncMode == storage.SyncAlways {
							// everything that was not acknowledged at once has been synced by now
							w.acked = len(w.states) - 1
						}
						why := fmt.Sprintf("seed %d, sync mode %d, %s for %d writes from %d on", seed, syncMode,
							failures[mode], writes, k)
						w.requireRecovered(rand.New(rand.NewPCG(seed, 2)), why)
						require.NoError(t, w.store.Close())
						require.True(t, w.start(syncMode))
						require.Equal(t, w.states[len(w.states)-1], stateOf(w.e), why)
						require.NoError(t, w.store.Close())
					})
				}
				require.Greater(t, full, tried/6, "the writes of the log were among them")
			}
		}
	}
}

// A kill while the disk is full leaves no torn record and no unreadable segment.
func TestKillOnFullDiskLeavesNoTornRecord(t *testing.T) {
	for k := 1; k <= 40; k++ {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			w := newWorld(t, newDisk(), testEpoch)
			w.states = []string{""}
			require.True(t, w.start(storage.SyncEverySecond))
			w.disk.fill(k, 1000, failTorn)
			for range 40 {
				if w.store.Refuses() != nil {
					break
				}
				w.call(r)
				time.Sleep(time.Duration(r.Int64N(int64(2 * writeDelay))))
			}
			next, logged := newWorld(t, w.disk.killed(), w.now.Load()), new(lines)
			next.o.Log = slog.New(logged)
			require.True(t, next.start(storage.SyncEverySecond))
			require.Contains(t, w.states, stateOf(next.e))
			require.Nil(t, next.store.Recovery().Torn)
			require.NoError(t, next.store.Close())
			w.disk.fill(0, 0, failOnce)
			require.NoError(t, w.store.Close(), "Close retries the write")
		})
	}
}

// Close returns how many changes could not be written.
func TestCloseReportsChangesLostToFullDisk(t *testing.T) {
	virtual(t, func(w *world) {
		logged := new(lines)
		w.o.Log = slog.New(logged)
		require.True(t, w.start(storage.SyncEverySecond))
		require.NoError(t, w.store.Wait(w.set("kept", 0)))
		time.Sleep(2 * time.Second)
		w.disk.fill(1, 1000, failOnce)
		for i := range 7 {
			require.NoError(t, w.store.Wait(w.set(fmt.Sprint(i), 0)))
		}
		require.NoError(t, w.store.Refuses(), "the writer has not tried yet")
		time.Sleep(time.Second)
		require.ErrorIs(t, w.store.Refuses(), syscall.ENOSPC)
		require.ErrorIs(t, w.store.Status().Full, syscall.ENOSPC)
		require.NoError(t, w.store.Status().Failure)
		require.Positive(t, w.store.Status().Backlog)
		require.ErrorIs(t, w.store.Snapshot(), syscall.ENOSPC)
		err := w.store.Close()
		require.ErrorIs(t, err, syscall.ENOSPC)
		require.ErrorContains(t, err, "not written: 7 changes in 7 records")
		require.Equal(t, 1, logged.with("the log could not be written to its end"))
		w.disk.fill(0, 0, failOnce)
		require.True(t, w.start(storage.SyncEverySecond))
		require.Contains(t, stateOf(w.e), "kept")
		require.NotContains(t, stateOf(w.e), "key=6")
		w.stop()
	})
}

// With storage.SyncAlways a change that waits for disk space is not acknowledged, and its call does
// not wait.
func TestFullDiskFailsCallsWithSyncAlways(t *testing.T) {
	virtual(t, func(w *world) {
		require.True(t, w.start(storage.SyncAlways))
		require.NoError(t, w.store.Wait(w.set("before", 0)))
		w.disk.fill(1, 5, failOnce)
		var calls sync.WaitGroup
		for i := range 20 {
			calls.Go(func() { require.ErrorIs(t, w.store.Wait(w.set(fmt.Sprint(i), 0)), syscall.ENOSPC) })
		}
		calls.Wait()
		time.Sleep(3 * time.Second)
		require.NoError(t, w.store.Refuses())
		require.NoError(t, w.store.Wait(w.set("after", 0)))
		state := stateOf(w.e)
		w.stop()
		require.True(t, w.start(storage.SyncAlways))
		require.Equal(t, state, stateOf(w.e))
		w.stop()
	})
}

// The memory for changes that wait for disk space is bounded: above the bound the log fails, as
// after any other error.
func TestBacklogOfAFullDiskIsBounded(t *testing.T) {
	virtual(t, func(w *world) {
		logged := new(lines)
		w.o.Log, w.o.Settings.Continue = slog.New(logged), true
		require.True(t, w.start(storage.SyncEverySecond))
		w.disk.fill(1, 1<<20, failOnce)
		var last engine.Position
		for range maxBacklog>>20 + 1 {
			require.NoError(t, w.store.Failure())
			last = w.set("k", 1<<20-100)
			require.NoError(t, w.store.Wait(last))
			require.NoError(t, w.store.Refuses())
			time.Sleep(time.Second)
		}
		require.ErrorIs(t, w.store.Failure(), errBacklog)
		require.NoError(t, w.store.Wait(last), "the server continues in memory")
		require.Equal(t, 1, logged.with("the log has failed and is closed"))
		require.Equal(t, 1, logged.with("kept in memory until there is space"))
		require.ErrorIs(t, w.store.Close(), errBacklog)
	})
}

// The store fails if its directory is removed, moved or replaced.
func TestRemovedDirectoryIsDetected(t *testing.T) {
	for how, remove := range map[string]func(dir string) error{
		"removed": os.RemoveAll,
		"moved":   func(dir string) error { return os.Rename(dir, dir+".old") },
		"emptied": func(dir string) error { return os.Remove(filepath.Join(dir, fileName(logFile, 1))) },
		"replaced": func(dir string) error {
			require.NoError(t, os.RemoveAll(dir))
			require.NoError(t, os.Mkdir(dir, 0o750))
			return os.WriteFile(filepath.Join(dir, fileName(logFile, 1)), nil, 0o640)
		},
	} {
		t.Run(how, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			s, err := Open(
				Options{
					Dir:        dir,
					AppendOnly: true,
					Clock:      func() int64 { return testEpoch },
					Log:        slog.New(slog.DiscardHandler),
					Settings:   storage.Settings{Sync: storage.SyncEverySecond},
				},
			)
			require.NoError(t, err)
			_, err = s.Load(engine.New(engine.Options{Journal: s}))
			require.NoError(t, err)
			require.NoError(t, s.Start())
			s.checkLogExists()
			require.NoError(t, s.Refuses())
			require.NoError(t, remove(dir))
			require.Eventually(t, func() bool { return s.Refuses() != nil }, 30*time.Second, 10*time.Millisecond)
			require.ErrorContains(t, s.Failure(), "the log is gone from the data directory")
			require.Error(t, s.Close())
		})
	}
}

// A snapshot that the stop cancels is not an error.
func TestCanceledSnapshotIsNotAnError(t *testing.T) {
	virtual(t, func(w *world) {
		var text strings.Builder
		w.o.Log = slog.New(slog.NewTextHandler(&text, nil))
		require.True(t, w.start(storage.SyncEverySecond))
		for i := range 2000 {
			w.set(fmt.Sprint(i), 1000)
		}
		w.disk.slowDown(ofSnapshots, time.Minute)
		require.NoError(t, w.store.SnapshotInBackground())
		time.Sleep(time.Second)
		w.stop()
		require.Contains(t, text.String(), "level=INFO msg=\"a snapshot was canceled because the server stops")
		require.NotContains(t, text.String(), "level=ERROR")
	})
}
