package resp

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestClockNeverRunsBackward(t *testing.T) {
	var system time.Time
	c := NewClock(func() time.Time { return system })
	for _, step := range []struct{ system, want int64 }{
		{1000, 1000}, {1001, 1001}, {500, 1001}, {1000, 1001}, {1001, 1001}, {1002, 1002}, {5000, 5000}, {0, 5000},
	} {
		system = time.UnixMilli(step.system)
		assert.Equal(t, step.want, c.Now(), "the system's clock shows %d", step.system)
	}
}

func TestClockNeverRunsBackwardForMany(t *testing.T) {
	c := NewClock(time.Now)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := int64(0)
			for range 10_000 {
				now := c.Now()
				if now < last {
					t.Errorf("%d after %d", now, last)
					return
				}
				last = now
			}
		})
	}
	all.Wait()
}
