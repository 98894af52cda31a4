package saving

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/internal/storage"
)

type fakeGroup struct {
	saves   int
	failure error
	during  func()
}

func (g *fakeGroup) Snapshot() error {
	g.saves++
	if g.during != nil {
		g.during()
	}
	return g.failure
}

func (*fakeGroup) Sizes() (log, snapshot int64) { return 10, 100 }

func TestAllGroupsAreSaved(t *testing.T) {
	one, two := new(fakeGroup), new(fakeGroup)
	now, changes, mode := int64(1000), int64(7), storage.SyncNever
	s := New(Options{
		Groups: func() []Group { return []Group{one, two} }, Changes: func() int64 { return changes },
		Now: func() int64 { return now }, Log: slog.New(slog.DiscardHandler), Took: func(time.Duration) {},
		SetSync: func(m storage.SyncMode) error { mode = m; return nil },
	})
	st := s.Status()
	assert.Equal(t, int64(1000), st.LastSave)
	assert.Equal(t, int64(220), st.Size())
	assert.Equal(t, int64(7), st.Changes)

	now = 2000
	one.during = func() {
		assert.ErrorIs(t, s.Snapshot(), storage.ErrBusy)
		assert.ErrorIs(t, s.SnapshotInBackground(), storage.ErrBusy)
		assert.True(t, s.Status().Saving)
	}
	require.NoError(t, s.Snapshot())
	st = s.Status()
	assert.Equal(t, []int{1, 1}, []int{one.saves, two.saves})
	assert.False(t, st.Saving || st.LastFailed)
	assert.Equal(t, int64(2000), st.LastSave)
	assert.Zero(t, st.Changes)

	now, changes, one.during, one.failure = 3000, 9, nil, errors.New("no space")
	assert.ErrorContains(t, s.Snapshot(), "no space")
	st = s.Status()
	assert.Equal(t, 2, two.saves, "the other group is saved")
	assert.True(t, st.LastFailed)
	assert.Equal(t, int64(2000), st.LastSave)
	assert.Equal(t, int64(2), st.Changes)

	one.failure = nil
	require.NoError(t, s.SnapshotInBackground())
	require.Eventually(t, func() bool { return s.Status().LastSave == 3000 }, time.Minute, time.Millisecond)
	assert.Equal(t, int64(3), s.Status().Saves)

	s.Configure(storage.Settings{Sync: storage.SyncEverySecond})
	assert.Equal(t, storage.SyncEverySecond, mode)
	assert.Equal(t, storage.SyncEverySecond, s.Status().Settings.Sync)
}
