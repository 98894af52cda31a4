package server

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rlserver/internal/stats"
	"rlserver/internal/storage"
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

// writePersistence writes the state of the disk. A snapshot is both what Redis calls a background
// save and a rewrite of the append only file. INFO shows it in the fields of both, as programs wait
// for either to end, except for BGREWRITEAOF.
func writePersistence(r *report) {
	var t storage.Status
	var rewriting, scheduled bool
	if r.env.Store != nil {
		t = r.env.Store.Status()
		_, rewriting, scheduled = r.env.Saves.Running()
	}
	logs, since := r.env.Store != nil && r.env.Settings.Start.AppendOnly, r.figures.LoadingSince
	r.field("loading", boolDigit(since != 0))
	r.field("async_loading", 0) // no data is served while other data is loaded
	r.field("rdb_bgsave_in_progress", boolDigit(t.Saving && !rewriting))
	r.field("aof_enabled", boolDigit(logs))
	r.field("aof_rewrite_in_progress", boolDigit(t.Saving))
	r.field("aof_rewrite_scheduled", boolDigit(scheduled))
	// snapshots are taken without a fork, and there are no modules
	r.zero("rdb_last_cow_size", "aof_last_cow_size", "module_fork_in_progress", "module_fork_last_cow_size")
	if r.env.Store != nil {
		writeSnapshots(r, t)
		writeLog(r, t, logs)
	}
	if since != 0 {
		writeLoading(r, t, since)
	}
}

func writeSnapshots(r *report, t storage.Status) {
	r.field("current_save_keys_processed", t.SavedKeys)
	r.field("current_save_keys_total", t.KeysToSave)
	r.field("rdb_changes_since_last_save", t.Changes)
	r.field("rdb_last_save_time", lastSaveTime(r.env, t))
	r.field("rdb_last_bgsave_status", okOrErr(!t.LastFailed))
	r.field("rdb_last_bgsave_time_sec", lastSaveSeconds(t))
	r.field("rdb_current_bgsave_time_sec", currentSaveSeconds(t, r.env.Clock()))
	r.field("rdb_saves", t.Saves)
	r.field("rdb_last_load_keys_expired", t.Expired)
	r.field("rdb_last_load_keys_loaded", t.Keys)
}

func writeLog(r *report, t storage.Status, logs bool) {
	r.field("aof_last_rewrite_time_sec", lastSaveSeconds(t))
	r.field("aof_current_rewrite_time_sec", currentSaveSeconds(t, r.env.Clock()))
	r.field("aof_last_bgrewrite_status", okOrErr(!t.LastFailed))
	r.field("aof_last_write_status", okOrErr(t.Failure == nil && t.Full == nil))
	if logs {
		r.field("aof_current_size", t.Size())
		r.field("aof_base_size", t.SizeAtSave)
		r.field("aof_buffer_length", t.Backlog)
		if t.DelayedSyncs >= 0 {
			r.field("aof_delayed_fsync", t.DelayedSyncs)
		}
	}
	state, failure := t.Disk()
	r.field("disk_state", state)
	r.field("disk_failure", strings.NewReplacer("\r", " ", "\n", " ").Replace(failure))
	r.field("disk_failure_policy", r.env.Settings.OnDiskFailure())
}

// writeLoading writes the progress of loading, which began at since (Unix ms), and an estimate of
// the time left.
func writeLoading(r *report, t storage.Status, since int64) {
	part, left, eta := 0.0, int64(1), int64(1) // as in Redis before anything is loaded
	if t.ToLoad > 0 {
		part, left = float64(t.Loaded)/float64(t.ToLoad), t.ToLoad-t.Loaded
	}
	if elapsed := (r.env.Clock() - since) / 1000; elapsed > 0 {
		eta = int64(float64(elapsed) * float64(left) / float64(t.Loaded+1))
	}
	r.field("loading_start_time", since/1000)
	r.field("loading_total_bytes", t.ToLoad)
	r.field("loading_loaded_bytes", t.Loaded)
	r.field("loading_loaded_perc", fmt.Sprintf("%.2f", part*100))
	r.field("loading_eta_seconds", eta)
}

// lastSaveSeconds returns how long the last snapshot took; -1 if there is none.
func lastSaveSeconds(t storage.Status) int64 {
	if t.LastTook == 0 {
		return -1
	}
	return int64(t.LastTook / time.Second)
}

// currentSaveSeconds returns for how long a snapshot has been running; -1 if none is.
func currentSaveSeconds(t storage.Status, now int64) int64 {
	if !t.Saving {
		return -1
	}
	return (now - t.SaveStart) / 1000
}

func boolDigit(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func okOrErr(good bool) string {
	if good {
		return "ok"
	}
	return "err"
}
