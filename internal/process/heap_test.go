package process

import (
	"math"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSmallHeapsMayGrowMore(t *testing.T) {
	assert.Equal(t, 1600, gcPercent(0, 0))
	assert.Equal(t, 200, gcPercent(8<<20, 8<<20))
	assert.Equal(t, 100, gcPercent(32<<20, 32<<20))
	assert.Equal(t, 100, gcPercent(1<<34, 1<<34))
}

// A heap that has few pointers may grow less, as it is collected for less.
func TestHeapsWithFewPointersGrowLess(t *testing.T) {
	assert.Equal(t, 100, gcPercent(1<<34, 1<<33))
	assert.Equal(t, 1600, gcPercent(1<<20, 0))
	assert.Equal(t, 50, gcPercent(32<<20, 1<<20))
	assert.Equal(t, 9, gcPercent(1<<34, 0))
	assert.Equal(t, 29, gcPercent(1000<<20, 100<<20))
	assert.Equal(t, 100, gcPercent(1<<30, 1<<40), "the two are not measured at once")
}

func TestMemoryLimitForMaxMemory(t *testing.T) {
	assert.EqualValues(t, math.MaxInt64, memoryLimit(0))
	assert.EqualValues(t, 368<<20, memoryLimit(256<<20))
	assert.EqualValues(t, 44<<20, memoryLimit(32<<20))
	assert.EqualValues(t, math.MaxInt64, memoryLimit(math.MaxInt64))
}

// The runtime's memory limit follows maxmemory, unless GOMEMLIMIT is lower.
func TestMemoryLimitFollowsMaxMemory(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for _, test := range []struct{ own, maxmemory, want int64 }{
		{math.MaxInt64, 0, math.MaxInt64},
		{math.MaxInt64, 256 << 20, 368 << 20},
		{100 << 20, 0, 100 << 20},
		{100 << 20, 256 << 20, 100 << 20},
		{100 << 20, 32 << 20, 44 << 20},
	} {
		synctest.Test(t, func(t *testing.T) {
			debug.SetMemoryLimit(test.own)
			var maxmemory atomic.Int64
			k := newHeapKeeper(HeapOptions{MaxMemory: maxmemory.Load})
			quit := make(chan struct{})
			go k.run(quit)
			for _, step := range []struct{ maxmemory, want int64 }{
				{0, test.own}, {test.maxmemory, test.want}, {0, test.own},
			} {
				maxmemory.Store(step.maxmemory)
				time.Sleep(heapTick)
				synctest.Wait()
				assert.Equal(t, step.want, debug.SetMemoryLimit(-1), "%+v", test)
			}
			close(quit)
		})
	}
}

func TestMemoryInUseIsReportedAfterEachCollection(t *testing.T) {
	var reports, last atomic.Int64
	stop := KeepHeap(HeapOptions{
		MaxMemory: func() int64 { return 0 },
		InUse:     func(bytes int64) { last.Store(bytes); reports.Add(1) },
	})
	defer stop()
	require.EqualValues(t, 1, reports.Load(), "once at the start")
	for want := int64(2); want < 4; want++ {
		require.Eventually(t, func() bool {
			runtime.GC()
			return reports.Load() >= want
		}, time.Minute, time.Millisecond)
	}
	assert.Positive(t, last.Load())
	stop()
}
