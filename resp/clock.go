package resp

import (
	"sync/atomic"
	"time"
)

// Clock gives the time in Unix ms and never runs backward: when the system's clock is set back, it stands still until
// that has caught up. Any goroutine may ask.
type Clock struct {
	latest atomic.Int64
	system func() time.Time
}

// NewClock returns a clock over the system's.
func NewClock(system func() time.Time) *Clock { return &Clock{system: system} }

// Now is the latest time the system's clock has shown to this one.
func (c *Clock) Now() int64 {
	now := c.system().UnixMilli()
	for {
		latest := c.latest.Load()
		if now <= latest {
			return latest
		}
		if c.latest.CompareAndSwap(latest, now) {
			return now
		}
	}
}

// NotBefore makes the clock stand still until the system's has come to a time, and returns how long that will be: 0 if it has.
func (c *Clock) NotBefore(ms int64) time.Duration {
	now := c.Now()
	for {
		latest := c.latest.Load()
		if ms <= latest {
			return time.Duration(max(0, ms-now)) * time.Millisecond
		}
		if c.latest.CompareAndSwap(latest, ms) {
			return time.Duration(ms-now) * time.Millisecond
		}
	}
}
