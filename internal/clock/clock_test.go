package clock

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	second = int64(time.Second / time.Microsecond)
	hour   = 3600 * second
	year   = 365 * 24 * hour
	epoch  = 1767225600 * second // 2026-01-01 00:00:00 UTC
)

// machine is a source of time that the test controls.
type machine struct {
	t       *testing.T
	wall    int64 // µs
	elapsed int64 // µs
	log     bytes.Buffer
	clock   *Clock
	jumps   int
	last    int64 // the last result of Now
}

func newMachine(t *testing.T) *machine {
	m := &machine{t: t, wall: epoch, elapsed: 12345678}
	m.boot()
	return m
}

// boot creates a clock, as a process does at its start.
func (m *machine) boot() {
	m.log.Reset()
	m.clock = New(Source{
		Read:    func() (int64, time.Duration) { return m.wall, time.Duration(m.elapsed) * time.Microsecond },
		Elapsed: func() time.Duration { return time.Duration(m.elapsed) * time.Microsecond },
	}, slog.New(slog.NewTextHandler(&m.log, nil)))
	m.clock.OnStep(func() { m.jumps++ })
}

// advance advances both clocks, by µs, without a check.
func (m *machine) advance(us int64) { m.wall, m.elapsed = m.wall+us, m.elapsed+us }

// run advances the time by seconds, with the checks of Run. It requires that server time advances
// at the right rate, except for jumps.
func (m *machine) run(seconds int64) {
	m.t.Helper()
	for range seconds {
		before, jumps := m.clock.Now(), m.jumps
		m.advance(second)
		at := m.clock.Now()
		if pace := at - before; pace < 999 || pace > 1001 {
			m.t.Fatalf("server time has advanced by %d ms in a second", pace)
		}
		m.clock.Check()
		if now := m.clock.Now(); now < at || now < m.last || m.jumps == jumps && now != at {
			m.t.Fatalf("a check has changed server time from %d to %d", at, now)
		}
		m.last = m.clock.Now()
	}
}

// difference is server time minus the time of a system clock that was never set, ms.
func (m *machine) difference(start int64) int64 { return m.clock.Now() - (epoch+m.elapsed-start)/1000 }

func TestSmallStepsAreSlewed(t *testing.T) {
	for _, step := range []int64{second, -second, 59 * second, -59 * second} {
		t.Run(duration(step).String(), func(t *testing.T) {
			m := newMachine(t)
			start := m.elapsed
			m.wall += step
			assert.Equal(t, Status{step / 1000, Slewing, duration(abs(step) * 2000)}, m.clock.Status())
			m.run(1)
			assert.InDelta(t, 0, m.difference(start), 2, "not at once")
			assert.Contains(t, m.log.String(), "is being slewed")
			assert.Contains(t, m.log.String(), "difference="+duration(step).String())
			m.run(1000)
			assert.InDelta(t, sign(step)*500, m.difference(start), 2, "500 ppm")
			assert.Equal(t, Slewing, m.clock.Status().State)
			m.run(abs(step)*2000/second - 990)
			assert.InDelta(t, step/1000, m.difference(start), 1)
			assert.Equal(t, Status{State: Synced}, m.clock.Status())
			assert.Contains(t, m.log.String(), "agrees with the system clock")
			assert.Zero(t, m.jumps)
		})
	}
}

func TestUndoneLargeStepsHaveNoEffect(t *testing.T) {
	for _, step := range []int64{
		61 * second, -61 * second, hour, -hour, 10 * year, -10 * year, 400 * year, -56 * year,
	} {
		for _, seconds := range []int64{0, 1, 59} {
			t.Run(fmt.Sprint(step, seconds), func(t *testing.T) {
				m := newMachine(t)
				start := m.elapsed
				m.run(5)
				m.wall += step
				assert.Equal(t, Waiting, m.clock.Status().State, "even before a check notices the step")
				m.run(seconds)
				assert.Equal(t, step/1000, m.clock.Status().Difference)
				assert.Equal(t, seconds > 0, strings.Contains(m.log.String(), "has jumped: server time follows"))
				m.wall -= step
				m.run(200)
				assert.InDelta(t, 0, m.difference(start), 1)
				assert.Equal(t, Status{State: Synced}, m.clock.Status())
				assert.Zero(t, m.jumps)
			})
		}
	}
}

func TestLargeStepForwardIsFollowedAfterAMinute(t *testing.T) {
	for _, step := range []int64{61 * second, hour, 10 * year, 400 * year} {
		m := newMachine(t)
		start := m.elapsed
		m.wall += step
		m.run(30)
		assert.Equal(t, Status{step / 1000, Waiting, 31 * time.Second}, m.clock.Status())
		m.run(30)
		assert.Zero(t, m.jumps)
		assert.InDelta(t, 0, m.difference(start), 1)
		m.run(1)
		assert.Equal(t, 1, m.jumps)
		assert.InDelta(t, step/1000, m.difference(start), 1)
		assert.Equal(t, Status{State: Synced}, m.clock.Status())
		assert.Contains(t, m.log.String(), "has jumped forward")
		m.run(1000)
		assert.InDelta(t, step/1000, m.difference(start), 1)
	}
}

func TestLargeStepBackwardIsSlewedAfterAMinute(t *testing.T) {
	for _, step := range []int64{-61 * second, -hour, -10 * year, -56 * year} {
		m := newMachine(t)
		start := m.elapsed
		m.wall += step
		m.run(60)
		assert.InDelta(t, 0, m.difference(start), 1)
		assert.Equal(t, Waiting, m.clock.Status().State)
		m.run(1)
		assert.Contains(t, m.log.String(), "ahead of the system clock, and cannot jump backward")
		assert.Contains(t, m.log.String(), "rlserver repair --clock")
		m.run(20000)
		assert.InDelta(t, max(step/1000, -10000), m.difference(start), 2, "500 ppm")
		assert.Equal(t, Slewing, m.clock.Status().State)
		assert.InDelta(t, step/1000+10000, m.clock.Status().Difference, 2)
		assert.Zero(t, m.jumps)
	}
}

func TestRepeatedJumpsAreNotFollowed(t *testing.T) {
	m := newMachine(t)
	start := m.elapsed
	for i := range int64(600) {
		m.wall += (i%2*2 - 1) * (hour + i*second*2)
		m.run(1)
	}
	assert.Zero(t, m.jumps)
	assert.InDelta(t, 0, m.difference(start), 301, "small differences may be slewed")
	assert.LessOrEqual(t, strings.Count(m.log.String(), "\n"), 20, "twice a minute\n%s", m.log.String())
}

func TestSuspensionIsAStep(t *testing.T) {
	m := newMachine(t)
	m.wall += 8 * hour // the monotonic clock stops during a suspension
	m.run(61)
	assert.Equal(t, m.wall/1000, m.clock.Now())
}

func TestLastingDifferenceIsLoggedOnceAnHour(t *testing.T) {
	m := newMachine(t)
	m.wall -= 10 * year
	m.run(61)
	m.log.Reset()
	m.run(10 * 3600)
	assert.Equal(t, 10, strings.Count(m.log.String(), "\n"), m.log.String())
}

// TestServerTimeIsSteadyAcrossRandomSteps sets the system clock at random times to random values.
// run checks server time.
func TestServerTimeIsSteadyAcrossRandomSteps(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		m := newMachine(t)
		for range 30 {
			m.wall += (r.Int64N(3) - 1) * []int64{1, 1000, second, 30 * second, hour, year}[r.IntN(6)]
			m.advance(r.Int64N(second))
			m.run(r.Int64N(90))
			st := m.clock.Status()
			require.InDelta(t, m.wall/1000-m.clock.Now(), st.Difference, 1)
		}
		m.run(65)
		assert.NotEqual(t, Waiting, m.clock.Status().State, "seed %d", seed)
		assert.Less(t, m.clock.Status().Difference, int64(60001), "seed %d: server time follows steps forward", seed)
	}
}

func TestRestartContinuesStrictlyAfterTheData(t *testing.T) {
	const now = epoch / 1000
	for _, step := range []struct {
		name       string
		last, want int64
		state      State
	}{
		{"no data", 0, now, Synced},
		{"data of a minute ago", now - 60000, now, Synced},
		{"down for an hour", now - 3600_000, now, Synced},
		{"down for a week", now - 7*86400_000, now, Synced},
		{"the clock did not advance", now, now + 1, Synced},
		{"the clock did not advance, within a millisecond", now - 1, now, Synced},
		{"a second ahead", now + 1000, now + 1001, Slewing},
		{"an hour ahead", now + 3600_000, now + 3600_001, Slewing},
		{"ten years ahead", now + 10*365*86400_000, now + 10*365*86400_000 + 1, Slewing},
		{"ten years behind", now - 10*365*86400_000, now - 10*365*86400_000 + 1, Waiting},
	} {
		t.Run(step.name, func(t *testing.T) {
			m := newMachine(t)
			m.clock.Now()
			m.clock.Continue(step.last)
			assert.Equal(t, step.want, m.clock.Now())
			if step.want != now+1 {
				assert.Equal(t, step.state, m.clock.Status().State)
			}
			m.run(59)
			assert.InDelta(t, step.want+59000, m.clock.Now(), 31, "time advances")
			m.run(2)
			if step.state == Waiting {
				assert.Equal(t, m.wall/1000, m.clock.Now())
			}
		})
	}
}

func TestDataAheadOfTheClockIsLoggedAtTheStart(t *testing.T) {
	m := newMachine(t)
	m.clock.Continue(m.wall/1000 + 10*365*86400_000)
	assert.Contains(t, m.log.String(), "rlserver repair --clock")
	assert.Contains(t, m.log.String(), "difference=-87600h0m0.001s")
}

func TestUntilIsZeroForPastTimes(t *testing.T) {
	m := newMachine(t)
	m.advance(300)
	for _, step := range []struct {
		ms   int64
		want time.Duration
	}{{0, 0}, {epoch / 1000, 0}, {epoch/1000 + 1, 700 * time.Microsecond}, {1<<63 - 1, 1<<63 - 1}} {
		assert.Equal(t, step.want, m.clock.Until(step.ms))
	}
}

func TestConcurrentReadersNeverSeeTimeGoBackward(t *testing.T) {
	var mu sync.Mutex
	offset := int64(0)
	source := System()
	c := New(Source{Elapsed: source.Elapsed, Read: func() (int64, time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now, elapsed := source.Read()
		return now + offset, elapsed
	}}, slog.New(slog.DiscardHandler))
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			for last := int64(0); last < 1<<62; {
				if now := c.Now(); now < last {
					t.Errorf("%d after %d", now, last)
					return
				} else {
					last = now
				}
				if last%1000 == 0 || i == 0 {
					mu.Lock()
					offset = rand.Int64N(200*second) - 100*second
					mu.Unlock()
					c.Check()
				}
				if c.Elapsed() > 50*time.Millisecond {
					return
				}
			}
		})
	}
	readers.Wait()
}

func TestRunChecksOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, ahead := System(), int64(0)
		c := New(Source{Elapsed: source.Elapsed, Read: func() (int64, time.Duration) {
			now, elapsed := source.Read()
			return now + ahead, elapsed
		}}, slog.New(slog.DiscardHandler))
		ahead = hour
		stop := c.Run()
		time.Sleep(60 * time.Second)
		assert.InDelta(t, time.Now().UnixMilli(), c.Now(), 1)
		time.Sleep(2 * time.Second)
		assert.Equal(t, time.Now().Add(time.Hour).UnixMilli(), c.Now())
		stop()
	})
}

func TestNowDoesNotAllocate(t *testing.T) {
	c := New(System(), slog.New(slog.DiscardHandler))
	assert.Zero(t, testing.AllocsPerRun(100, func() { c.Now() }))
}

func BenchmarkNow(b *testing.B) {
	c := New(System(), slog.New(slog.DiscardHandler))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.Now()
		}
	})
}

func abs(n int64) int64  { return max(n, -n) }
func sign(n int64) int64 { return n / abs(n) }
