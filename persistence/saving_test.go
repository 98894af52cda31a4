package persistence

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/internal/storage"
)

// settle waits until the store has done everything that is due.
func (w *world) settle() {
	time.Sleep(2 * maintainTick)
	synctest.Wait()
}

func TestGrowthTakesSnapshots(t *testing.T) {
	virtual(t, func(w *world) {
		w.o.Settings.GrowthPercent, w.o.Settings.GrowthMin = 100, 10_000
		require.True(t, w.start(storage.SyncEverySecond))
		for range 9 {
			w.set("k", 1000)
		}
		w.settle()
		require.Zero(t, w.store.Status().Saves, "not below GrowthMin")
		for i := range 5 {
			w.set(fmt.Sprint(i), 1000)
		}
		w.settle()
		st := w.store.Status()
		require.EqualValues(t, 1, st.Saves)
		require.Less(t, st.LogBytes+st.SnapshotBytes, int64(1000), "zeros compress well")
		w.settle()
		for range 9 {
			w.set("k", 1000)
		}
		w.settle()
		require.EqualValues(t, 1, w.store.Status().Saves)
		w.set("k", 1000)
		w.settle()
		require.EqualValues(t, 2, w.store.Status().Saves)
		w.store.Configure(storage.Settings{Sync: storage.SyncEverySecond})
		w.set("k", 100_000)
		w.settle()
		require.EqualValues(t, 2, w.store.Status().Saves, "0 percent: never")
		w.stop()
	})
}

// The percentage is of the size after the last snapshot.
func TestGrowthIsMeasuredAgainstTheLastSnapshot(t *testing.T) {
	for _, c := range []struct {
		percent, size, base int64
		due                 bool
	}{
		{100, 1999, 1000, false}, {100, 2000, 1000, true}, {50, 1499, 1000, false}, {50, 1500, 1000, true},
		{300, 3999, 1000, false}, {300, 4000, 1000, true}, {0, 1 << 40, 1000, false},
		{100, 99, 0, false}, {100, 100, 0, true},
	} {
		s := &Store{options: Options{AppendOnly: true, Clock: func() int64 { return 0 }}}
		s.settings.Store(&storage.Settings{GrowthPercent: c.percent, GrowthMin: 100})
		s.status.LogBytes, s.status.SizeAtSave = c.size, c.base
		require.Equal(t, c.due, s.due() != "", "%+v", c)
	}
}

func TestSavePointsTakeSnapshots(t *testing.T) {
	virtual(t, func(w *world) {
		w.o.Settings.Save = []storage.SavePoint{{Seconds: 3600, Changes: 1}, {Seconds: 60, Changes: 10}}
		require.True(t, w.start(storage.SyncEverySecond))
		time.Sleep(3*time.Hour + maintainTick/2) // between two ticks of the store
		require.Zero(t, w.store.Status().Saves, "nothing has changed")
		for range 10 {
			w.set("k", 1)
		}
		require.EqualValues(t, 10, w.store.Status().Changes)
		w.settle()
		st := w.store.Status()
		require.EqualValues(t, 1, st.Saves)
		require.Zero(t, st.Changes)
		require.InDelta(t, time.Now().UnixMilli(), st.LastSave, 2000)
		for range 10 {
			w.set("k", 1)
		}
		time.Sleep(55 * time.Second)
		require.EqualValues(t, 1, w.store.Status().Saves)
		time.Sleep(10 * time.Second)
		require.EqualValues(t, 2, w.store.Status().Saves)
		w.set("k", 1)
		time.Sleep(59 * time.Minute)
		require.EqualValues(t, 2, w.store.Status().Saves)
		time.Sleep(2 * time.Minute)
		require.EqualValues(t, 3, w.store.Status().Saves)
		w.stop()
	})
}

// A failed snapshot is retried, but not at once, and leaves nothing behind.
func TestFailedSnapshotIsRetried(t *testing.T) {
	virtual(t, func(w *world) {
		logged := new(lines)
		w.o.Log, w.o.Settings.Save = slog.New(logged), []storage.SavePoint{{Seconds: 60, Changes: 1}}
		require.True(t, w.start(storage.SyncEverySecond))
		w.set("k", 1)
		time.Sleep(59 * time.Second)
		w.disk.slowDown(ofSnapshots, 5*time.Second)
		time.Sleep(3 * time.Second)
		w.disk.fail()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		st := w.store.Status()
		require.True(t, st.LastFailed)
		require.NoError(t, st.Failure, "the log continues")
		require.Zero(t, st.Saves)
		require.EqualValues(t, 1, st.Changes)
		require.Equal(t, 1, logged.with("the snapshot has failed"))
		names, _ := w.disk.list()
		require.Equal(t, []string{"0000000001.log", "0000000002.log"}, names)
		w.disk.slowDown(ofSnapshots, 0)
		time.Sleep(retryAfter - 5*time.Second)
		require.Equal(t, 1, logged.with("beginning a snapshot"))
		time.Sleep(8 * time.Second)
		st = w.store.Status()
		require.EqualValues(t, 1, st.Saves)
		require.False(t, st.LastFailed)
		w.stop()
	})
}

func TestOnlyOneSnapshotIsTakenAtATime(t *testing.T) {
	virtual(t, func(w *world) {
		require.True(t, w.start(storage.SyncAlways))
		w.set("k", 1)
		w.disk.slowDown(ofSnapshots, time.Minute)
		require.NoError(t, w.store.SnapshotInBackground())
		time.Sleep(time.Second)
		require.True(t, w.store.Status().Saving)
		require.ErrorIs(t, w.store.Snapshot(), storage.ErrBusy)
		require.ErrorIs(t, w.store.SnapshotInBackground(), storage.ErrBusy)
		start := time.Now()
		require.NoError(t, w.store.Wait(w.set("k", 1)), "calls continue meanwhile")
		require.Zero(t, time.Since(start))
		time.Sleep(time.Hour)
		require.False(t, w.store.Status().Saving)
		require.NoError(t, w.store.Snapshot())
		require.EqualValues(t, 2, w.store.Status().Saves)
		require.GreaterOrEqual(t, w.store.Status().LastTook, time.Minute)
		w.stop()
	})
}

// Close cancels a snapshot in progress as soon as the disk returns, and the next start loads the
// log.
func TestCloseCancelsASnapshot(t *testing.T) {
	virtual(t, func(w *world) {
		require.True(t, w.start(storage.SyncAlways))
		for i := range 2000 {
			w.set(fmt.Sprint(i), 500)
		}
		w.disk.slowDown(ofSnapshots, time.Minute)
		require.NoError(t, w.store.SnapshotInBackground())
		time.Sleep(time.Second)
		state, start := stateOfRunning(w), time.Now()
		w.stop()
		require.LessOrEqual(t, time.Since(start), 2*time.Minute+time.Second, "two writes, without pauses")
		names, _ := w.disk.list()
		require.Equal(t, []string{"0000000001.log", "0000000002.log"}, names)
		require.ErrorIs(t, w.store.Snapshot(), errClosing)
		require.True(t, w.start(storage.SyncAlways))
		require.Equal(t, state, stateOf(w.e))
		w.stop()
	})
}

// stateOfRunning returns the state of an engine during a snapshot, from a replay of its log.
func stateOfRunning(w *world) string {
	r := recovery{fs: readOnly{w.disk}, e: engine.New(engine.Options{Databases: 3}), read: ignoreBytes}
	f, err := listFiles(w.disk)
	require.NoError(w.t, err)
	require.NoError(w.t, r.load(f))
	return stateOf(r.e)
}

// A snapshot that a crash has left unfinished is ignored, and removed by the next start.
func TestUnfinishedSnapshotIsRemoved(t *testing.T) {
	virtual(t, func(w *world) {
		require.True(t, w.start(storage.SyncAlways))
		require.NoError(t, w.store.Wait(w.set("k", 1)))
		state := stateOf(w.e)
		w.stop()
		half, err := w.disk.create("0000000009.snapshot" + temporary)
		require.NoError(t, err)
		_, err = half.Write(fileHeader{version: formatVersion, kind: snapshotFile, sequence: 9}.encode())
		require.NoError(t, err)
		require.True(t, w.start(storage.SyncAlways))
		require.Equal(t, state, stateOf(w.e))
		names, _ := w.disk.list()
		require.Equal(t, []string{"0000000001.log", "0000000002.log"}, names)
		w.stop()
	})
}

// Older files are removed when the new ones are durable, and not before.
func TestSnapshotRemovesOldFilesLast(t *testing.T) {
	virtual(t, func(w *world) {
		require.True(t, w.start(storage.SyncNever))
		for range 2 {
			w.set("k", 1)
			require.NoError(t, w.store.Snapshot())
		}
		operations := w.disk.operations()
		operations = operations[slices.Index(operations, "create 0000000003.snapshot.tmp"):]
		order := []string{
			"sync 0000000003.snapshot.tmp", "rename 0000000003.snapshot.tmp 0000000003.snapshot", "sync directory",
			"remove 0000000002.snapshot", "remove 0000000002.log", "sync directory",
		}
		at := slices.Index(operations, order[1])
		require.Equal(t, order, operations[at-1:at+5])
		require.Contains(t, w.disk.operations()[:len(w.disk.operations())-len(operations)+at], "create 0000000003.log",
			"the log continues in the next segment before the snapshot gets its name")
		require.Contains(t, w.disk.operations()[:len(w.disk.operations())-len(operations)+at], "sync 0000000002.log")
		w.stop()
	})
}

// Without a log, the state is that of the last snapshot. The directory is created with the first
// snapshot.
func TestSnapshotsWithoutALog(t *testing.T) {
	w := newDataWorld(t, filepath.Join(t.TempDir(), "not", "there"))
	w.o.AppendOnly = false
	require.True(t, w.start(storage.SyncAlways))
	require.Zero(t, w.set("a", 1), "nothing to wait for")
	require.NoDirExists(t, w.o.Dir)
	require.False(t, w.store.Status().AppendOnly)
	for range 2 {
		require.NoError(t, w.store.Snapshot())
	}
	state := stateOf(w.e)
	w.set("lost", 1)
	w.stop()
	require.Equal(t, []string{"0000000002.snapshot"}, slices.Collect(maps.Keys(readAll(t, w.o.Dir))))

	require.True(t, w.start(storage.SyncAlways))
	require.Equal(t, state, stateOf(w.e))
	w.set("b", 1)
	require.NoError(t, w.store.Snapshot())
	w.stop()

	w.o.AppendOnly = true // a log can continue from a snapshot
	require.True(t, w.start(storage.SyncAlways))
	require.Contains(t, stateOf(w.e), "key=b")
	w.set("c", 1)
	w.stop()
	w.o.AppendOnly = false
	require.True(t, w.start(storage.SyncAlways))
	require.Contains(t, stateOf(w.e), "key=c")
	require.NoError(t, w.store.Snapshot())
	w.stop()
	require.Len(t, readAll(t, w.o.Dir), 1)
	require.True(t, w.start(storage.SyncAlways))
	require.Contains(t, stateOf(w.e), "key=c")
	w.stop()
}

// A directory that cannot be created is a failure like any other: it is logged, and retried after a
// minute.
func TestSnapshotReportsDirectoryThatCannotBeCreated(t *testing.T) {
	above := filepath.Join(t.TempDir(), "file")
	w := newDataWorld(t, filepath.Join(above, "data"))
	w.o.AppendOnly = false
	w.o.Settings.Save = []storage.SavePoint{{Seconds: 0, Changes: 1}}
	require.True(t, w.start(storage.SyncAlways))
	require.NoError(t, os.WriteFile(above, nil, 0o600))
	require.Error(t, w.store.SnapshotInBackground())
	w.set("k", 1)
	require.True(t, w.store.Status().LastFailed)
	require.Empty(t, w.store.due())
	w.stop()
}

// Data that another server has put into a directory that did not exist at the start is not
// replaced.
func TestDataOfAnotherServerIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first, second := newDataWorld(t, dir), newDataWorld(t, dir)
	for _, w := range []*world{first, second} {
		w.o.AppendOnly = false
		require.True(t, w.start(storage.SyncAlways))
	}
	first.set("k", 1)
	require.NoError(t, first.store.Snapshot())
	files := readAll(t, dir)
	require.ErrorContains(t, second.store.Snapshot(), fmt.Sprintf("in use by process %d", os.Getpid()))
	first.stop()
	for range 2 {
		require.ErrorContains(t, second.store.Snapshot(), "another server has stored data in the directory")
	}
	require.Equal(t, files, readAll(t, dir))
	second.stop()
}

// Without its lock the directory is still the same, until another server uses it.
func TestRemovedLockIsNotAnotherDirectory(t *testing.T) {
	dir := t.TempDir()
	w := newDataWorld(t, dir)
	w.o.AppendOnly = true
	require.True(t, w.start(storage.SyncAlways))
	require.NoError(t, os.Remove(filepath.Join(dir, "lock")))
	require.NoError(t, w.store.Wait(w.set("k", 1)))
	require.NoError(t, w.store.Snapshot())
	require.NoError(t, w.store.Wait(w.set("k", 1)))

	require.NoError(t, os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600))
	require.ErrorContains(t, w.store.Snapshot(), "was replaced or removed")
	w.store.Close()
}

// Data that another server has put in the place of the directory is neither replaced nor removed,
// whatever is next: a snapshot, its last steps, or a segment.
func TestReplacedDirectoryIsLeftAlone(t *testing.T) {
	for _, appendOnly := range []bool{false, true} {
		t.Run(fmt.Sprint("log ", appendOnly), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			require.NoError(t, os.Mkdir(dir, 0o750))
			w := newDataWorld(t, dir)
			w.o.AppendOnly = appendOnly
			require.True(t, w.start(storage.SyncAlways))
			w.set("k", 1)
			// the steps of a snapshot whose directory is replaced meanwhile
			fs := w.store.fs
			o, err := createSnapshot(fs, 9, 0)
			require.NoError(t, err)
			require.NoError(t, os.Rename(dir, dir+" of before"))
			require.ErrorContains(t, w.store.Snapshot(), "the data directory "+dir+" was replaced or removed")

			other := newDataWorld(t, dir)
			require.True(t, other.start(storage.SyncAlways))
			require.NoError(t, other.store.Wait(other.set("other", 1)))
			require.NoError(t, os.WriteFile(filepath.Join(dir, o.name+temporary), nil, 0o600))
			files := readAll(t, dir)
			const replaced = " was replaced or removed"
			require.ErrorContains(t, w.store.Snapshot(), replaced)
			require.ErrorContains(t, w.store.SnapshotInBackground(), replaced)
			require.True(t, w.store.Status().LastFailed)
			require.False(t, w.store.Status().Saving)
			require.ErrorContains(t, o.complete(nil), replaced)
			require.ErrorContains(t, w.store.removeBefore(9), replaced)
			require.ErrorContains(t, fs.truncate(fileName(logFile, 1), 0), replaced)
			_, err = fs.create(fileName(logFile, 2))
			require.ErrorContains(t, err, replaced)
			require.Equal(t, files, readAll(t, dir))
			w.store.Close()
			require.Equal(t, files, readAll(t, dir))
			other.stop()
		})
	}
}

// One process at a time can lock a directory; a repair locks it too.
func TestDirectoryIsLockedForOneProcess(t *testing.T) {
	dir := t.TempDir()
	w := newDataWorld(t, dir)
	require.True(t, w.start(storage.SyncAlways))
	inUse := fmt.Sprintf("the data directory %s is in use by process %d", dir, os.Getpid())
	_, err := Open(w.o)
	require.EqualError(t, err, inUse)
	require.EqualError(t, Repair(dir, new(bytes.Buffer), NoProgress{}), inUse)
	require.NoError(t, Check(dir, new(bytes.Buffer), NoProgress{}), "reading is allowed")
	require.NoError(t, Dump(dir, new(bytes.Buffer), false, NoProgress{}))
	w.stop()
	require.True(t, w.start(storage.SyncAlways))
	w.stop()
	require.NoError(t, Repair(dir, new(bytes.Buffer), NoProgress{}))
}

func TestSyncsAndSnapshotsAreObserved(t *testing.T) {
	virtual(t, func(w *world) {
		var syncs, snapshots []time.Duration
		w.o.ObserveSync = func(took time.Duration) { syncs = append(syncs, took) }
		w.o.ObserveSnapshot = func(took time.Duration) { snapshots = append(snapshots, took) }
		require.True(t, w.start(storage.SyncAlways))
		w.disk.slowDown(ofLog, 10*time.Millisecond)
		require.NoError(t, w.store.Wait(w.set("k", 1)))
		require.NotEmpty(t, syncs)
		require.GreaterOrEqual(t, syncs[len(syncs)-1], 10*time.Millisecond)
		w.disk.slowDown(ofSnapshots, time.Minute)
		require.NoError(t, w.store.Snapshot())
		require.Len(t, snapshots, 1)
		require.Equal(t, w.store.Status().LastTook, snapshots[0])
		w.stop()
	})
}
