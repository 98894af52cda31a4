package resp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rlserver/resp/command"
	"rlserver/resp/config"
	"rlserver/stats"
)

// eachCommand calls do for all commands that have been called, subcommands included, by name.
func (s *Server) eachCommand(do func(name string, counts *stats.CommandCounts)) {
	for _, c := range command.Table.Sorted() {
		for _, one := range append([]*command.Command{c}, c.Subs...) {
			if counts := s.Stats.Command(one.Index); counts != nil {
				do(one.FullName(), counts)
			}
		}
	}
}

// writeCommandStats writes what the calls of each command have cost.
func (s *Server) writeCommandStats(r *report) {
	s.eachCommand(func(name string, counts *stats.CommandCounts) {
		us, each := counts.Time.Microseconds(), 0.0
		if counts.Calls > 0 {
			each = float64(us) / float64(counts.Calls)
		}
		if counts.Calls+counts.Rejected+counts.Failed > 0 {
			r.field(
				"cmdstat_"+name,
				fmt.Sprintf("calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d",
					counts.Calls, us, each, counts.Rejected, counts.Failed),
			)
		}
	})
}

// writeErrorStats writes how often each error code was the reply.
func (s *Server) writeErrorStats(r *report) {
	counts := s.Stats.Errors.Snapshot()
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		// as in Redis, without what would end the field
		name := strings.NewReplacer("#", "_", ":", "_").Replace(code)
		r.field("errorstat_"+name, fmt.Sprintf("count=%d", counts[code]))
	}
}

// writeLatencyStats writes the percentiles of the latencies of each command, in µs.
func (s *Server) writeLatencyStats(r *report) {
	if !s.Stats.TracksLatency() {
		return
	}
	percentiles := s.Settings.LatencyPercentiles()
	s.eachCommand(func(name string, counts *stats.CommandCounts) {
		if counts.Latency.Count == 0 {
			return
		}
		var list []string
		for _, p := range percentiles {
			list = append(list, fmt.Sprintf("p%s=%.3f", config.PercentileText(p),
				float64(counts.Latency.Percentile(p))/float64(time.Microsecond)))
		}
		r.field("latency_percentiles_usec_"+name, strings.Join(list, ","))
	})
}

// rates are what INFO shows as instantaneous, of the last seconds.
type rates struct{ calls, in, out stats.Rate }

// StartSampling measures rates and the peak of memory once a second, until stop is called.
func (s *Server) StartSampling() (stop func()) {
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-quit:
				return
			case <-ticker.C:
				s.sample()
			}
		}
	}()
	return func() { close(quit); <-done }
}

func (s *Server) sample() {
	s.mu.Lock()
	sum := s.sinceStart()
	s.mu.Unlock()
	now := s.Time.Elapsed()
	s.rates.calls.Sample(now, sum.calls)
	s.rates.in.Sample(now, sum.in)
	s.rates.out.Sample(now, sum.out)
	s.notePeak()
}

// notePeak updates the peak of memory, and returns it.
func (s *Server) notePeak() int64 {
	used := s.usedMemory()
	for {
		peak := s.peakMemory.Load()
		if used <= peak || s.peakMemory.CompareAndSwap(peak, used) {
			return max(used, peak)
		}
	}
}

// writeAllocator writes the peak of memory, and how the Go runtime holds it, in Redis' terms:
// objects, the pages that these lie in, and what is not returned to the system.
func (s *Server) writeAllocator(r *report) {
	peak := s.notePeak()
	r.bytes("used_memory_peak", peak)
	r.field("used_memory_peak_perc", ratio(100*s.usedMemory(), peak)+"%")
	r.field("used_memory_startup", s.startup)
	allocated := runtimeBytes("/memory/classes/heap/objects:bytes")
	active := allocated + runtimeBytes("/memory/classes/heap/unused:bytes")
	resident := runtimeBytes("/memory/classes/total:bytes") - runtimeBytes("/memory/classes/heap/released:bytes")
	r.field("allocator_allocated", allocated)
	r.field("allocator_active", active)
	r.field("allocator_resident", resident)
	r.field("allocator_frag_ratio", ratio(active, allocated))
	r.field("allocator_frag_bytes", active-allocated)
	r.field("allocator_rss_ratio", ratio(resident, active))
	r.field("allocator_rss_bytes", resident-active)
}
