package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rlserver/internal/stats"
	"rlserver/resp/command"
	"rlserver/resp/config"
)

// eachCommand calls do for all commands that have been called, subcommands included, by name.
func eachCommand(s *stats.Counters, do func(name string, counts *stats.CommandCounts)) {
	for _, c := range command.Table.Sorted() {
		for _, one := range append([]*command.Command{c}, c.Subs...) {
			if counts := s.Command(one.Index); counts != nil {
				do(one.FullName(), counts)
			}
		}
	}
}

// writeCommandStats writes the number and the time of the calls of each command.
func writeCommandStats(r *report) {
	eachCommand(r.env.Stats, func(name string, counts *stats.CommandCounts) {
		us, each := counts.Time.Microseconds(), 0.0
		if counts.Calls > 0 {
			each = float64(us) / float64(counts.Calls)
		}
		if counts.Calls+counts.Rejected+counts.Failed > 0 {
			const format = "calls=%d,usec=%d,usec_per_call=%.2f,rejected_calls=%d,failed_calls=%d"
			r.field("cmdstat_"+name, fmt.Sprintf(format, counts.Calls, us, each, counts.Rejected, counts.Failed))
		}
	})
}

// writeErrorStats writes how often each error code was the reply.
func writeErrorStats(r *report) {
	counts := r.env.Stats.Errors.Snapshot()
	for _, code := range slices.Sorted(maps.Keys(counts)) {
		// as in Redis, without characters that would end the field
		name := strings.NewReplacer("#", "_", ":", "_").Replace(code)
		r.field("errorstat_"+name, fmt.Sprintf("count=%d", counts[code]))
	}
}

// writeLatencyStats writes the percentiles of the latencies of each command, in µs.
func writeLatencyStats(r *report) {
	if !r.env.Stats.TracksLatency() {
		return
	}
	percentiles := r.env.Settings.LatencyPercentiles()
	eachCommand(r.env.Stats, func(name string, counts *stats.CommandCounts) {
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

// writeAllocator writes the peak of memory, and the memory of the Go runtime.
func writeAllocator(r *report) {
	peak, a := r.figures.PeakMemory, readAllocator()
	r.bytes("used_memory_peak", peak)
	r.field("used_memory_peak_perc", ratio(100*r.figures.Memory, peak)+"%")
	r.field("used_memory_startup", r.figures.StartMemory)
	r.field("allocator_allocated", a.allocated)
	r.field("allocator_active", a.active)
	r.field("allocator_resident", a.resident)
	r.field("allocator_frag_ratio", ratio(a.active, a.allocated))
	r.field("allocator_frag_bytes", a.active-a.allocated)
	r.field("allocator_rss_ratio", ratio(a.resident, a.active))
	r.field("allocator_rss_bytes", a.resident-a.active)
}
