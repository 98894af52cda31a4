package cluster

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestALogThatWasNotSyncedMayBeCut changes whether a node syncs its logs, and looks at what the
// next start makes of a power failure.
func TestALogThatWasNotSyncedMayBeCut(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, func(_ int, o *Options) { o.Sync, o.Expect = true, 1 })
	f.startAll()
	f.stable()
	cutAfterPowerFailure := func() bool {
		state, err := loadState(f.options[0].Dir)
		require.NoError(t, err)
		require.False(t, state.Clean, "as long as the node runs")
		state.Boot = "another"
		return mayBeCut(state)
	}
	restart := func(sync bool) {
		f.stop(0)
		f.options[0].Sync = sync
		require.NoError(t, f.start(0))
	}
	assert.False(t, cutAfterPowerFailure())
	require.NoError(t, f.nodes[0].SetSync(true))
	assert.False(t, cutAfterPowerFailure())
	require.NoError(t, f.nodes[0].SetSync(false))
	assert.True(t, cutAfterPowerFailure())
	require.NoError(t, f.nodes[0].SetSync(true))
	assert.True(t, cutAfterPowerFailure(), "what was written before may not be on the disk")
	restart(true)
	assert.False(t, cutAfterPowerFailure(), "the logs were synced when they were closed")
	restart(false)
	assert.True(t, cutAfterPowerFailure())
	restart(true)
	assert.False(t, cutAfterPowerFailure())

	state, err := loadState(f.options[0].Dir)
	require.NoError(t, err)
	f.stop(0)
	state.Synced = false // as if the run before had ended with kill -9
	require.NoError(t, state.save(f.options[0].Dir))
	require.NoError(t, f.start(0))
	assert.True(t, cutAfterPowerFailure())
}
