package stats

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBucketsAreInOrderAndHoldTheirBounds(t *testing.T) {
	for i := range Buckets - 2 {
		assert.Less(t, Bound(i), Bound(i+1))
	}
	for i := range Buckets - 1 {
		assert.Equal(t, i, bucketOf(Bound(i)), "bound %v", Bound(i))
		assert.Equal(t, i+1, bucketOf(Bound(i)+1), "after %v", Bound(i))
	}
	assert.Equal(t, 0, bucketOf(-time.Second))
	assert.Equal(t, Buckets-1, bucketOf(1<<62))
	assert.Equal(t, Bound(Buckets-2), Bound(Buckets-1))
}

func TestPowersOfTwoOfMicrosecondsAreBounds(t *testing.T) {
	var h Histogram
	for power := 0; power <= 23; power++ {
		h.Observe(time.Microsecond << power)
		h.Observe(time.Microsecond<<power + 1)
	}
	d := h.Snapshot()
	for power := 0; power <= 23; power++ {
		assert.EqualValues(t, 2*power+1, d.AtMost(power), "2^%d µs", power)
	}
	assert.Zero(t, d.AtMost(-2))
}

func TestPercentilesAreAtMostAQuarterTooHigh(t *testing.T) {
	var h Histogram
	for us := 1; us <= 100_000; us++ {
		h.Observe(time.Duration(us) * time.Microsecond)
	}
	d := h.Snapshot()
	require.EqualValues(t, 100_000, d.Count)
	for _, p := range []float64{1, 50, 90, 99, 99.9, 100} {
		exact := time.Duration(p * 1000 * float64(time.Microsecond))
		assert.GreaterOrEqual(t, d.Percentile(p), exact, "p%v", p)
		assert.LessOrEqual(t, d.Percentile(p), exact*5/4, "p%v", p)
	}
	assert.Equal(t, time.Microsecond, d.Percentile(0))
	assert.Zero(t, new(Distribution).Percentile(50))
	h.Reset()
	assert.Equal(t, Distribution{}, h.Snapshot())
}

func TestConcurrentMetersAddUp(t *testing.T) {
	c := New(3)
	var all sync.WaitGroup
	for connection := range 20 {
		all.Go(func() {
			m := Meter{Counters: c, Stripe: connection}
			for i := range 1000 {
				m.Add(i/7%2, 2, time.Duration(rand.Int64N(1e6)))
				if i%16 == 0 {
					m.Flush()
				}
			}
			c.Failed(1, connection)
			c.Rejected(1, connection)
			c.Decided(1, connection, ShadowDenied)
			m.Flush()
		})
	}
	all.Wait()
	first, second := c.Command(0), c.Command(1)
	assert.EqualValues(t, 40_000, first.Calls+second.Calls)
	assert.EqualValues(t, first.Calls, first.Latency.Count)
	assert.Equal(t, first.Time, first.Latency.Sum)
	assert.EqualValues(t, 20, second.Failed)
	assert.EqualValues(t, 20, second.Rejected)
	assert.Equal(t, DecisionCounts{ShadowDenied: 20}, second.Decisions)
	assert.Nil(t, c.Command(2), "never called")
	c.Reset()
	assert.Nil(t, c.Command(0))
}

func TestMeterFlushesWhenCommandOrBucketChanges(t *testing.T) {
	c := New(2)
	m := Meter{Counters: c}
	m.Flush()
	m.Add(0, 16, time.Microsecond)
	m.Add(0, 16, time.Microsecond)
	assert.Nil(t, c.Command(0), "kept until the command changes")
	m.Add(1, 1, 3*time.Microsecond)
	assert.EqualValues(t, 32, c.Command(0).Calls)
	assert.Equal(t, 32*time.Microsecond, c.Command(0).Time)
	m.Add(1, 1, time.Second)
	assert.EqualValues(t, 1, c.Command(1).Calls, "another bucket")
	m.Flush()
	m.Flush()
	assert.EqualValues(t, 2, c.Command(1).Calls)
}

func TestLatenciesAreCountedOnlyIfTracked(t *testing.T) {
	c := New(1)
	m := Meter{Counters: c}
	add := func() *CommandCounts {
		m.Add(0, 1, time.Millisecond)
		m.Flush()
		return c.Command(0)
	}
	assert.EqualValues(t, 1, add().Latency.Count)
	c.TrackLatency(false)
	assert.False(t, c.TracksLatency())
	assert.EqualValues(t, 1, add().Latency.Count)
	assert.EqualValues(t, 2, c.Command(0).Calls)
	c.TrackLatency(true)
	assert.EqualValues(t, 2, add().Latency.Count)
}

func TestErrorsAreCountedByCode(t *testing.T) {
	var e Errors
	for _, text := range []string{
		"ERR no", "ERR yes", "WRONGTYPE Operation", "NOAUTH", "", " x", "A\x00B", "é", fmt.Sprintf("%0100d", 1),
	} {
		e.Count(text)
	}
	assert.Equal(t, map[string]int64{"ERR": 2, "WRONGTYPE": 1, "NOAUTH": 1, "OTHER": 5}, e.Snapshot())
	e.Reset()
	assert.Empty(t, e.Snapshot())
}

func TestErrorCodesAreLimited(t *testing.T) {
	var e Errors
	for i := range 1000 {
		e.Count(fmt.Sprintf("E%d x", i))
	}
	counts := e.Snapshot()
	assert.Len(t, counts, maxErrorCodes)
	assert.EqualValues(t, 1000-(maxErrorCodes-1), counts["OTHER"])
	assert.EqualValues(t, 1, counts["E126"])
}

func TestRateOfTheLastSamples(t *testing.T) {
	var r Rate
	assert.Zero(t, r.PerSecond())
	r.Sample(time.Second, 1000)
	assert.Zero(t, r.PerSecond())
	r.Sample(2*time.Second, 1500)
	assert.Equal(t, 500.0, r.PerSecond())
	for i := range 10 {
		r.Sample(time.Duration(3+i)*time.Second, 1500)
	}
	assert.Zero(t, r.PerSecond(), "the first samples were replaced")
	r.Sample(20*time.Second, 0)
	assert.Zero(t, r.PerSecond(), "the counter was reset")
}

func TestCountingDoesNotAllocate(t *testing.T) {
	c := New(2)
	m := Meter{Counters: c}
	c.Errors.Count("ERR x")
	var i int
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		i++
		m.Add(i%2, 1, time.Duration(i))
		m.Flush()
		c.Decided(0, i, Admitted)
		c.Errors.Count("ERR y")
	}))
}

func BenchmarkMeter(b *testing.B) {
	c := New(2)
	b.RunParallel(func(pb *testing.PB) {
		m := Meter{Counters: c, Stripe: rand.Int()}
		for pb.Next() {
			m.Add(1, 1, 900)
			m.Flush()
		}
	})
}
