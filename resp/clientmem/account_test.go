package clientmem

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The memory of a client is counted in its pool, moves with the client, and is subtracted at the
// end.
func TestAccountCountsInItsPool(t *testing.T) {
	var pools Pools
	pools.Init()
	var a, b Account
	a.Set(Input, 1000) // in no pool yet
	a.MoveTo(&pools.Unauthenticated)
	b.MoveTo(&pools.Normal)
	assert.True(t, b.Set(Output, 500))
	assert.EqualValues(t, 500, pools.Normal.Bytes.Load()-pools.Unauthenticated.Bytes.Load()+1000)
	assert.EqualValues(t, pools.Bytes.Load(), pools.Normal.Bytes.Load()+pools.Unauthenticated.Bytes.Load())

	before := pools.Bytes.Load()
	a.MoveTo(&pools.Normal)
	assert.Zero(t, pools.Unauthenticated.Bytes.Load())
	assert.Equal(t, before, pools.Normal.Bytes.Load())
	assert.Same(t, &pools.Normal, a.Pool())

	assert.True(t, a.Close())
	assert.False(t, a.Close(), "only the first Close reports true")
	assert.False(t, a.Set(Input, 1), "Set on a closed account reports false")
	assert.Zero(t, pools.Evicted.Load())
	assert.True(t, b.Evict())
	assert.False(t, b.Evict())
	assert.EqualValues(t, 1, pools.Evicted.Load())
	assert.Zero(t, pools.Bytes.Load())
	assert.GreaterOrEqual(t, pools.TakePeak(), before)
	assert.Zero(t, pools.TakePeak())
}

func TestPoolIsFullAboveItsLimit(t *testing.T) {
	var pools Pools
	pools.Init()
	var a Account
	a.MoveTo(&pools.Normal)
	base := pools.Normal.Bytes.Load()
	pools.Normal.Limit.Store(base + 100)
	a.Set(Args, 100)
	assert.False(t, a.PoolFull())
	a.Set(Args, 101)
	assert.True(t, a.PoolFull())
	a.MoveTo(&pools.Exempt)
	assert.False(t, a.PoolFull())
	assert.EqualValues(t, 101, a.Total())
	assert.EqualValues(t, 101, a.Part(Args))
}
