package persistence

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"rlserver/engine"
	"rlserver/engine/limit"
	"rlserver/internal/storage"
)

// A key that expired while the server was down is deleted by the start, and the deletion is logged:
// a key of any type that is created under its name later is loaded again.
func TestExpiredKeysAreDeletedByStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newDisk(), testEpoch)
		require.True(t, w.start(storage.SyncAlways))
		k := w.e.Key([]byte("k"))
		w.tx.Begin(w.now.Load(), 0, []engine.Key{k}, true)
		w.tx.Set(k, []byte("text"), engine.SetMode{ExpireAt: testEpoch + 100})
		require.NoError(t, w.store.Wait(w.tx.End()))
		require.NoError(t, w.store.Close())
		time.Sleep(time.Second)
		w.now.Add(1000)

		require.True(t, w.start(storage.SyncAlways))
		require.Empty(t, stateOf(w.e))
		require.EqualValues(t, 1, w.store.Status().Expired)
		require.Zero(t, w.store.Status().Keys)
		k = w.e.Key([]byte("k"))
		w.tx.Begin(w.now.Load(), 0, []engine.Key{k}, true)
		_, err := w.tx.Slide(k, []limit.Window{{Limit: 20, Length: hour}}, 1, nil)
		require.NoError(t, err)
		require.NoError(t, w.store.Wait(w.tx.End()))
		before := stateOf(w.e)
		require.NoError(t, w.store.Close())

		require.True(t, w.start(storage.SyncAlways))
		require.Equal(t, before, stateOf(w.e))
		require.NoError(t, w.store.Close())
	})
}
