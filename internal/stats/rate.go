package stats

import (
	"sync"
	"time"
)

// rateSamples is the number of samples that a Rate keeps.
const rateSamples = 4

// Rate computes the increase per second of a counter from its last few samples. The zero value is
// ready to use.
type Rate struct {
	mu      sync.Mutex
	samples [rateSamples]struct {
		at    time.Duration
		count int64
	}
	taken int
}

// Sample records the value of the counter. at is the time by a monotonic clock.
func (r *Rate) Sample(at time.Duration, count int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.samples[r.taken%rateSamples]
	s.at, s.count = at, count
	r.taken++
}

// PerSecond returns the increase per second over the time of the samples, or 0 if there are fewer
// than two or the counter was reset.
func (r *Rate) PerSecond() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken < 2 {
		return 0
	}
	last, first := r.samples[(r.taken-1)%rateSamples], r.samples[max(0, r.taken-rateSamples)%rateSamples]
	if last.at <= first.at {
		return 0
	}
	return max(0, float64(last.count-first.count)/(last.at-first.at).Seconds())
}
