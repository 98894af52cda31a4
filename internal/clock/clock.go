package clock

import (
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// slewPart is the slew rate: one part in 2000, 500 ppm.
	slewPart = 2000

	// longestSlew is the largest difference that is slewed at once, µs.
	longestSlew = int64(time.Minute / time.Microsecond)

	// followTime is how long a larger difference has to last before the clock follows it.
	followTime = time.Minute

	// maxDrift is how far the system clock may move against the monotonic clock without a step, µs.
	maxDrift = int64(time.Second / time.Microsecond)

	// tolerance is the largest difference that counts as none, µs, because readings are not exact.
	tolerance = int64(time.Millisecond/time.Microsecond) - 1

	// longestPause is the largest lead of the system clock over the data at a start that is not a
	// step, µs.
	longestPause = int64(7 * 24 * time.Hour / time.Microsecond)
)

// Source is what a clock reads the time from.
type Source struct {
	// Read returns the system clock in Unix µs and the monotonic clock at the same moment.
	Read func() (wall int64, elapsed time.Duration)
	// Elapsed returns the monotonic clock.
	Elapsed func() time.Duration
}

// System returns the clocks of the machine.
func System() Source {
	start := time.Now()
	return Source{
		Read: func() (int64, time.Duration) {
			now := time.Now()
			return now.UnixMicro(), now.Sub(start)
		},
		Elapsed: func() time.Duration { return time.Since(start) },
	}
}

// Clock is the server's time. Its methods are safe for concurrent use.
type Clock struct {
	source Source
	log    *slog.Logger
	line   atomic.Pointer[line]
	latest atomic.Int64 // the last result of Now, Unix ms
	unique atomic.Int64 // that of Unique, Unix µs

	mu      sync.Mutex
	trusted int64 // system clock minus elapsed time that server time follows, µs
	step    *step // a step that server time does not follow yet, or nil
	report  report
	stepped func() // see OnStep
}

// line is server time as a function of elapsed time: it starts at a point, and slews until the
// difference is zero.
type line struct {
	from       int64 // elapsed, µs
	at         int64 // server time then, Unix µs
	difference int64 // system clock minus server time then, µs
}

func (l *line) time(elapsed time.Duration) int64 {
	since := max(0, elapsed.Microseconds()-l.from)
	return l.at + since + clamp(l.difference, since/slewPart)
}

// left returns the remaining difference at an elapsed time, µs.
func (l *line) left(elapsed time.Duration) int64 {
	since := max(0, elapsed.Microseconds()-l.from)
	return l.difference - clamp(l.difference, since/slewPart)
}

// clamp returns the number between -most and most that is nearest to n.
func clamp(n, most int64) int64 { return max(-most, min(n, most)) }

// step is a jump of the system clock that may be undone.
type step struct {
	offset int64         // system clock minus elapsed time, µs
	since  time.Duration // elapsed
}

// New returns a clock that starts at the system time, and logs steps and differences.
func New(source Source, log *slog.Logger) *Clock {
	c := &Clock{source: source, log: log, stepped: func() {}}
	wall, elapsed := source.Read()
	c.trusted = wall - elapsed.Microseconds()
	c.line.Store(&line{from: elapsed.Microseconds(), at: wall})
	return c
}

// OnStep sets the function that Check calls after server time has jumped forward. It must be called
// before Check.
func (c *Clock) OnStep(do func()) { c.stepped = do }

// Now returns the server's time in Unix ms. It never goes backward once Continue has been called.
func (c *Clock) Now() int64 {
	now, _ := c.Read()
	return now
}

// Read returns Now and Elapsed at the same moment.
func (c *Clock) Read() (now int64, elapsed time.Duration) {
	elapsed = c.source.Elapsed()
	now = c.line.Load().time(elapsed) / 1000
	for {
		latest := c.latest.Load()
		if now <= latest {
			return latest, elapsed // latest may be greater if Check has just replaced the line
		}
		if c.latest.CompareAndSwap(latest, now) {
			return now, elapsed
		}
	}
}

// Micros returns the server's time in Unix µs.
func (c *Clock) Micros() int64 {
	return max(c.line.Load().time(c.source.Elapsed()), c.latest.Load()*1000)
}

// Unique returns a time in Unix µs, or as much later as it takes to differ from all times that it
// has returned before.
func (c *Clock) Unique(us int64) int64 {
	for {
		last := c.unique.Load()
		us = max(us, last+1)
		if c.unique.CompareAndSwap(last, us) {
			return us
		}
	}
}

// Elapsed returns the monotonic clock: the time since an arbitrary moment, to measure durations.
func (c *Clock) Elapsed() time.Duration { return c.source.Elapsed() }

// Until returns how long it takes until a time in Unix ms; 0 if it has passed.
func (c *Clock) Until(ms int64) time.Duration {
	now := c.line.Load().time(c.source.Elapsed())
	if ms > (math.MaxInt64-now)/1000 {
		return math.MaxInt64
	}
	return duration(max(0, ms*1000-now))
}

// duration converts µs to a Duration, limited to the longest.
func duration(us int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Microsecond)
	return time.Duration(clamp(us, most)) * time.Microsecond
}

// Continue makes server time continue strictly after last, the latest time in the data in Unix ms;
// 0: there is no data. It must be called once, before Check.
func (c *Clock) Continue(last int64) {
	if last == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, elapsed := c.source.Read()
	us, next := elapsed.Microseconds(), (last+1)*1000
	switch difference := wall - next; {
	case difference > longestPause:
		c.trusted, c.step = next-us, &step{wall - us, elapsed}
		c.line.Store(&line{from: us, at: next})
		c.report.farBehind(c.log, difference)
	case difference < 0:
		c.trusted = wall - us
		c.line.Store(&line{from: us, at: next, difference: difference})
		c.report.slewing(c.log, difference, 0, elapsed)
	default:
		c.trusted = wall - us
		c.line.Store(&line{from: us, at: wall})
	}
	c.latest.Store(0) // forget the results of Now before the data was loaded
	c.unique.Store(0)
}

// Check compares server time with the system clock. It must be called about once a second.
func (c *Clock) Check() {
	if c.check() {
		c.stepped()
	}
}

func (c *Clock) check() (jumped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, elapsed := c.source.Read()
	us, now := elapsed.Microseconds(), c.line.Load().time(elapsed)
	// system clock minus monotonic clock, and minus server time
	offset, difference := wall-us, wall-now
	switch {
	case near(difference, longestSlew) || near(offset-c.trusted, maxDrift):
		if c.step != nil {
			c.report.undone(c.log, difference)
		}
		c.trusted, c.step = offset, nil
	case c.step == nil || !near(offset-c.step.offset, maxDrift):
		c.step = &step{offset, elapsed}
		c.report.waiting(c.log, difference, elapsed)
	case elapsed-c.step.since >= followTime:
		c.trusted, c.step = offset, nil
		if jumped = difference > 0; jumped {
			now = wall
		}
		c.report.followed(c.log, difference, elapsed)
	}
	difference = c.trusted + us - now
	changed := difference - c.line.Load().left(elapsed)
	if jumped || !near(changed, tolerance) {
		c.line.Store(&line{from: us, at: now, difference: difference})
	}
	if c.step == nil {
		c.report.slewing(c.log, difference, changed, elapsed)
	}
	return jumped
}

// near reports whether n is between -most and most.
func near(n, most int64) bool { return -most <= n && n <= most }

// State is how a clock handles a difference.
type State string

// The states, as INFO reports them.
const (
	Synced  State = "synced"  // no difference
	Slewing State = "slewing" // the difference is being slewed
	Waiting State = "waiting" // a step is followed once it has lasted for a minute
)

// Status compares server time with the system clock.
type Status struct {
	Difference int64 // system clock minus server time, ms
	State      State
	// remaining time of the state: until the difference is zero, or until the step is followed
	Left time.Duration
}

// Status returns the current status. It takes no lock but the clock's own.
func (c *Clock) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall, elapsed := c.source.Read()
	difference := wall - c.line.Load().time(elapsed)
	s := Status{Difference: difference / 1000, State: Synced}
	switch {
	case c.step != nil:
		s.State, s.Left = Waiting, max(0, followTime-(elapsed-c.step.since))
	case !near(difference, longestSlew) && !near(wall-elapsed.Microseconds()-c.trusted, maxDrift):
		s.State, s.Left = Waiting, followTime // Check has not noticed it yet
	case !near(difference, tolerance):
		s.State, s.Left = Slewing, slewTime(difference)
	}
	return s
}

// slewTime returns how long it takes to slew a difference in µs.
func slewTime(difference int64) time.Duration {
	return duration(clamp(difference, math.MaxInt64/slewPart) * slewPart).Abs()
}

// Run calls Check once a second until stop is called.
func (c *Clock) Run() (stop func()) { return Every(time.Second, c.Check) }

// Every calls do at an interval, in a goroutine of its own, until stop is called. stop waits for a
// running call.
func Every(interval time.Duration, do func()) (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
				do()
			}
		}
	}()
	return func() { close(quit); <-done }
}
