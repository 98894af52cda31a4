package persistence

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/internal/storage"
)

// The golden directories of a format version are testdata/v<version>/<name>. Next to each are the
// output of Dump, <name>.txt, and the state after a start, <name>.state. The file sums has the
// SHA-256 of all files.
const sums = "SHA256SUMS"

// golden are the directories of each version: a log alone, a snapshot with the log after it, and a
// log with a torn tail.
var golden = []string{"log", "snapshot", "torn"}

// TestWriteGolden creates the golden directories of the current format version. It runs only if
// RLSERVER_WRITE_GOLDEN is set, and never overwrites a directory.
func TestWriteGolden(t *testing.T) {
	if os.Getenv("RLSERVER_WRITE_GOLDEN") == "" {
		t.Skip("RLSERVER_WRITE_GOLDEN is not set")
	}
	root := filepath.Join("testdata", fmt.Sprint("v", formatVersion))
	require.NoDirExists(t, root, "golden files are never overwritten")
	for _, name := range golden {
		dir := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(dir, 0o750))
		w := newDataWorld(t, dir)
		require.True(t, w.start(storage.SyncAlways))
		for i, call := range callsOfAllKinds() {
			w.apply(call...)
			if i == 16 && name == "snapshot" {
				require.NoError(t, w.store.Snapshot())
			}
		}
		w.stop()
		require.NoError(t, os.Remove(filepath.Join(dir, lockName)))
		if name == "torn" {
			tearOff(t, dir)
		}
		dumped, state := describe(t, dir)
		require.NoError(t, os.WriteFile(dir+".txt", []byte(dumped), 0o640))
		require.NoError(t, os.WriteFile(dir+".state", []byte(state), 0o640))
	}
	require.NoError(t, os.WriteFile(filepath.Join(root, sums), []byte(summed(t, root)), 0o640))
}

// tearOff removes the mark at the end of a log, and half of the record before it.
func tearOff(t *testing.T, dir string) {
	files := readAll(t, dir)
	last := slices.Max(slices.Collect(maps.Keys(files)))
	offsets := callsIn(t, files[last])
	end := offsets[len(offsets)-1]
	_, size, err := readRecord(nil, files[last][end:])
	require.NoError(t, err)
	require.NoError(t, os.Truncate(filepath.Join(dir, last), end+int64(size)/2))
}

// describe returns what a directory contains: its dump, and the state after a start on a copy of
// it.
func describe(t *testing.T, dir string) (dumped, state string) {
	var out bytes.Buffer
	require.NoError(t, Dump(dir, &out, false, NoProgress{}))
	copied := t.TempDir()
	writeAll(t, copied, readAll(t, dir))
	e, _, err := loaded(t, copied, 3)
	require.NoError(t, err)
	return out.String(), stateOf(e) + "\n"
}

// summed lists the checksums of all files below a directory, except the list itself.
func summed(t *testing.T, root string) string {
	var list strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == sums {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(content), filepath.ToSlash(name))
		return err
	}))
	return list.String()
}

// The directories of all versions are read as when they were written.
func TestGoldenDirectoriesAreRead(t *testing.T) {
	roots, err := filepath.Glob("testdata/v*")
	require.NoError(t, err)
	require.Len(t, roots, formatVersion)
	for _, root := range roots {
		want, err := os.ReadFile(filepath.Join(root, sums))
		require.NoError(t, err)
		require.Equal(t, string(want), summed(t, root), "golden files are never edited")
		for _, name := range golden {
			t.Run(filepath.Base(root)+" "+name, func(t *testing.T) {
				dir := filepath.Join(root, name)
				dumped, state := describe(t, dir)
				wantDump, err := os.ReadFile(dir + ".txt")
				require.NoError(t, err)
				assert.Equal(t, string(wantDump), dumped)
				wantState, err := os.ReadFile(dir + ".state")
				require.NoError(t, err)
				assert.Equal(t, string(wantState), state)
			})
		}
	}
}

// A window continues after a start: none of the seven hits that the golden log leaves in it is lost
// or counted twice.
func TestGoldenWindowContinues(t *testing.T) {
	for _, name := range golden {
		dir := t.TempDir()
		writeAll(t, dir, readAll(t, filepath.Join("testdata/v1", name)))
		e, _, err := loaded(t, dir, 3)
		require.NoError(t, err)
		admitted := 0
		tx := e.NewTx()
		for range 10 {
			k := e.Key([]byte("slide"))
			tx.Begin(testEpoch+hour/2, 0, []engine.Key{k}, true)
			d, err := tx.Slide(k, []limit.Window{{Limit: 10, Length: hour}}, 1, nil)
			require.NoError(t, err)
			tx.End()
			if d.Allowed {
				admitted++
			}
		}
		require.Equal(t, 10-7, admitted, name)
	}
}
