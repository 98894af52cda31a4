package persistence

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// shifting is a directory that a server changes right after its files have been listed, a few
// times.
type shifting struct {
	fileSystem
	changes []func()
}

func (s *shifting) list() ([]string, error) {
	names, err := s.fileSystem.list()
	if len(s.changes) > 0 {
		s.changes[0]()
		s.changes = s.changes[1:]
	}
	return names, err
}

// A check of a directory whose server takes snapshots, which remove files, reports nothing wrong.
func TestCheckWhileAServerWrites(t *testing.T) {
	virtual(t, func(w *world) {
		require.True(t, w.start(SyncAlways))
		change := func() {
			for i := range 3 {
				require.NoError(t, w.store.Wait(w.set(fmt.Sprint(i), 100)))
			}
			require.NoError(t, w.store.Snapshot())
		}
		change()
		nothing := func() {}
		fs := &shifting{w.disk, []func(){nothing, change, nothing, nothing, change, nothing}}
		var said bytes.Buffer
		require.NoError(t, checkLive(readOnly{fs}, &said))
		require.NotContains(t, said.String(), "then")
		require.Contains(t, said.String(), "a start on this directory reads 3 records\n")
		require.Empty(t, fs.changes)

		fs.changes = []func(){nothing}
		for range maxReads {
			fs.changes = append(fs.changes, change, nothing, nothing)
		}
		require.ErrorContains(t, checkLive(readOnly{fs}, &said), "a start on this directory would fail", "not for ever")
		w.stop()
	})
}
