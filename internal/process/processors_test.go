package process

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOneProcessorIsLeftFreeUntilPipelinesAreDeep(t *testing.T) {
	for _, c := range []struct {
		used           int
		calls, batches int64
		want           int
	}{
		{7, 1000, 1000, 7},  // single calls
		{8, 1000, 1000, 7},  //
		{7, 16000, 1000, 8}, // pipelines of 16
		{8, 16000, 1000, 8}, //
		{7, 3000, 1000, 7},  // between the thresholds: no change
		{8, 3000, 1000, 8},  //
		{8, 10, 10, 8},      // idle
		{7, 0, 0, 7},        //
		{7, 1600, 99, 7},    // too few batches: no change
	} {
		assert.Equal(t, c.want, processors(8, c.used, c.calls, c.batches), "%+v", c)
	}
}

// While a long call runs all processors are used, whatever the load.
func TestLongCallsUseAllProcessors(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	before := runtime.GOMAXPROCS(3)
	defer runtime.GOMAXPROCS(before)
	p := FitProcessors()
	using := func() int { return runtime.GOMAXPROCS(0) }
	require.Equal(t, 2, using())
	first, second := p.LongCall(), p.LongCall()
	require.Equal(t, 3, using())
	p.adapt(1000, 1000)
	first()
	p.adapt(1000, 1000)
	require.Equal(t, 3, using(), "the second still runs")
	second()
	p.adapt(10, 10)
	require.Equal(t, 3, using(), "too few batches: no change")
	p.adapt(1000, 1000)
	require.Equal(t, 2, using())
}

func TestGOMAXPROCSOfTheEnvironmentIsKept(t *testing.T) {
	t.Setenv("GOMAXPROCS", "3")
	before := runtime.GOMAXPROCS(3)
	defer runtime.GOMAXPROCS(before)
	p := FitProcessors()
	defer p.LongCall()()
	defer p.Follow(nil)()
	require.Equal(t, 3, runtime.GOMAXPROCS(0))
}
