package persistence

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/internal/storage"
)

// changingDirectory is a directory that a server changes right after its files have been listed, a
// few times.
type changingDirectory struct {
	fileSystem
	changes []func()
}

func (s *changingDirectory) list() ([]string, error) {
	names, err := s.fileSystem.list()
	if len(s.changes) > 0 {
		s.changes[0]()
		s.changes = s.changes[1:]
	}
	return names, err
}

// recorder records how many bytes each stage announces and reports.
type recorder struct {
	stages []string
	of     []int64
	done   []int64
	ended  int
}

func (f *recorder) Begin(stage string, bytes int64) {
	f.stages, f.of, f.done = append(f.stages, stage), append(f.of, bytes), append(f.done, 0)
}

func (f *recorder) Add(bytes int) { f.done[len(f.done)-1] += int64(bytes) }
func (f *recorder) End()          { f.ended++ }

// Every long operation reports all of its bytes, stage by stage.
func TestProgressReportsAllBytes(t *testing.T) {
	d := newDataset(t)
	for name, test := range map[string]struct {
		work   func(dir string, f *recorder) error
		stages []string
	}{
		"check": {func(dir string, f *recorder) error { return Check(dir, io.Discard, f) },
			[]string{"checking", "loading"}},
		"dump":   {func(dir string, f *recorder) error { return Dump(dir, io.Discard, false, f) }, []string{"reading"}},
		"repair": {func(dir string, f *recorder) error { return Repair(dir, io.Discard, f) }, []string{"loading"}},
		"repair of the clock": {func(dir string, f *recorder) error { return RepairClock(dir, 0, io.Discard, f) },
			[]string{"loading", "copying"}},
		"a start": {func(dir string, f *recorder) error {
			s, err := Open(Options{
				Dir: dir, AppendOnly: true, Clock: func() int64 { return 0 },
				Log: slog.New(slog.DiscardHandler), Progress: f,
			})
			if err == nil {
				_, err = s.Load(engine.New(engine.Options{Databases: maxDatabases}))
				err = errors.Join(err, s.Close())
			}
			return err
		}, []string{"loading"}},
	} {
		f := new(recorder)
		require.NoError(t, test.work(d.put(t), f), name)
		require.Equal(t, test.stages, f.stages, name)
		require.Equal(t, f.of, f.done, name)
		require.NotZero(t, f.of[0], name)
		require.Equal(t, len(f.stages), f.ended, name)
	}
}

// A check of a directory whose server takes snapshots, which remove files, reports nothing wrong.
func TestCheckWhileAServerWrites(t *testing.T) {
	virtual(t, func(w *world) {
		require.True(t, w.start(storage.SyncAlways))
		change := func() {
			for i := range 3 {
				require.NoError(t, w.store.Wait(w.set(fmt.Sprint(i), 100)))
			}
			require.NoError(t, w.store.Snapshot())
		}
		change()
		nothing := func() {}
		fs := &changingDirectory{w.disk, []func(){nothing, change, nothing, nothing, change, nothing}}
		var output bytes.Buffer
		require.NoError(t, checkLive(readOnly{fs}, &output, NoProgress{}))
		require.NotContains(t, output.String(), "then")
		require.Contains(t, output.String(), "a start on this directory reads 1 records\n")
		require.Empty(t, fs.changes)

		fs.changes = []func(){nothing}
		for range maxReads {
			fs.changes = append(fs.changes, change, nothing, nothing)
		}
		require.ErrorContains(
			t,
			checkLive(readOnly{fs}, &output, NoProgress{}),
			"a start on this directory would fail",
			"reading is retried maxReads times at most",
		)
		w.stop()
	})
}
