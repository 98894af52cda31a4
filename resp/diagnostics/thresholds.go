package diagnostics

import (
	"math"
	"time"

	"rlserver/resp/config"
)

// SlowAfter returns the time from which calls are in the slow log.
func SlowAfter(s *config.Settings) time.Duration {
	us := s.SlowlogSlowerThan.Load()
	if us < 0 || us > math.MaxInt64/int64(time.Microsecond) {
		return math.MaxInt64
	}
	return time.Duration(us) * time.Microsecond
}

// SpikeAfter returns the time from which calls are events of LATENCY.
func SpikeAfter(s *config.Settings) time.Duration {
	ms := s.LatencyThreshold.Load()
	if ms == 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return math.MaxInt64
	}
	return time.Duration(ms) * time.Millisecond
}
