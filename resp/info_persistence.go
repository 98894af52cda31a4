package resp

import (
	"fmt"
	"strings"

	"rlserver/resp/config"
)

// writePersistence writes the state of the disk. A snapshot is both what Redis calls a background
// save and a rewrite of the append only file. INFO shows it in the fields of both, as programs wait
// for either to end.
func (s *Server) writePersistence(r *report) {
	var t config.StoreStatus
	if s.store != nil {
		t = s.store.Status()
	}
	logs, since := s.store != nil && s.Settings.Start.AppendOnly, s.loading.Load()
	r.field("loading", boolDigit(since != 0))
	r.field("async_loading", 0) // no data is served while other data is loaded
	r.field("rdb_bgsave_in_progress", boolDigit(t.Saving))
	r.field("aof_enabled", boolDigit(logs))
	r.field("aof_rewrite_in_progress", boolDigit(t.Saving))
	r.field("aof_rewrite_scheduled", 0)
	if s.store != nil {
		s.writeSnapshots(r, t)
		s.writeLog(r, t, logs)
	}
	if since != 0 {
		s.writeLoading(r, t, since)
	}
}

func (s *Server) writeSnapshots(r *report, t config.StoreStatus) {
	r.field("current_save_keys_processed", t.SaveKeysDone)
	r.field("current_save_keys_total", t.SaveKeys)
	r.field("rdb_changes_since_last_save", t.ChangesUnsaved)
	r.field("rdb_last_save_time", s.lastSave(t))
	r.field("rdb_last_bgsave_status", okOrErr(!t.LastSaveFailed))
	r.field("rdb_last_bgsave_time_sec", lastSaveSeconds(t))
	r.field("rdb_current_bgsave_time_sec", currentSaveSeconds(t, s.Clock()))
	r.field("rdb_saves", t.Saves)
	r.field("rdb_last_load_keys_expired", t.KeysExpired)
	r.field("rdb_last_load_keys_loaded", t.KeysLoaded)
}

func (s *Server) writeLog(r *report, t config.StoreStatus, logs bool) {
	r.field("aof_last_rewrite_time_sec", lastSaveSeconds(t))
	r.field("aof_current_rewrite_time_sec", currentSaveSeconds(t, s.Clock()))
	r.field("aof_last_bgrewrite_status", okOrErr(!t.LastSaveFailed))
	r.field("aof_last_write_status", okOrErr(t.Failure+t.Full == ""))
	if logs {
		r.field("aof_current_size", t.LogSize)
		r.field("aof_base_size", t.LogSizeAtSave)
		r.field("aof_buffer_length", t.LogBuffered)
		if t.LogSyncsDelayed >= 0 {
			r.field("aof_delayed_fsync", t.LogSyncsDelayed)
		}
	}
	r.field("disk_state", diskState(t))
	r.field("disk_failure", strings.NewReplacer("\r", " ", "\n", " ").Replace(t.Failure+t.Full))
	r.field("disk_failure_policy", s.Settings.Store().OnDiskFailure)
}

// diskState is ok, full while the log waits for free space, or failed until the server restarts.
func diskState(t config.StoreStatus) string {
	switch {
	case t.Failure != "":
		return "failed"
	case t.Full != "":
		return "full"
	}
	return "ok"
}

// writeLoading writes the progress of the loading that began at since (Unix ms), and estimates when
// it ends.
func (s *Server) writeLoading(r *report, t config.StoreStatus, since int64) {
	part, left, eta := 0.0, int64(1), int64(1) // as in Redis while nothing is known
	if t.LoadTotal > 0 {
		part, left = float64(t.LoadDone)/float64(t.LoadTotal), t.LoadTotal-t.LoadDone
	}
	if elapsed := (s.Clock() - since) / 1000; elapsed > 0 {
		eta = int64(float64(elapsed) * float64(left) / float64(t.LoadDone+1))
	}
	r.field("loading_start_time", since/1000)
	r.field("loading_total_bytes", t.LoadTotal)
	r.field("loading_loaded_bytes", t.LoadDone)
	r.field("loading_loaded_perc", fmt.Sprintf("%.2f", part*100))
	r.field("loading_eta_seconds", eta)
}

// lastSaveSeconds is how long the last snapshot took; -1: there was none.
func lastSaveSeconds(t config.StoreStatus) int64 {
	if t.LastSaveTook < 0 {
		return -1
	}
	return t.LastSaveTook / 1000
}

// currentSaveSeconds is for how long a snapshot has been running; -1: none is.
func currentSaveSeconds(t config.StoreStatus, now int64) int64 {
	if !t.Saving {
		return -1
	}
	return (now - t.SaveStarted) / 1000
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
