package clock

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestThrottleCountsSkippedLines(t *testing.T) {
	var l Throttle
	for _, step := range []struct {
		now, missed int64
		ok          bool
	}{{0, 0, true}, {1, 0, false}, {999, 0, false}, {1000, 2, true}, {1500, 0, false}, {5000, 1, true}} {
		missed, ok := l.Allow(step.now, time.Second)
		assert.Equal(t, step.missed, missed)
		assert.Equal(t, step.ok, ok)
	}
}
