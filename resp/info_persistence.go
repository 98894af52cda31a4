package resp

import (
	"fmt"
	"rlserver/resp/config"
	"strings"
)

// tellPersistence tells what is on disk. A snapshot is what Redis calls a background save and a rewrite of the append only file, in one: it is
// told under both names, as programs wait for either to end.
func (s *Server) tellPersistence(r *report) {
	var t config.StoreStatus
	if s.store != nil {
		t = s.store.Status()
	}
	logs, since := s.store != nil && s.Settings.Start.AppendOnly, s.loading.Load()
	r.field("loading", digit(since != 0))
	r.field("async_loading", 0) // data is never served while other data is loaded
	r.field("rdb_bgsave_in_progress", digit(t.Saving))
	r.field("aof_enabled", digit(logs))
	r.field("aof_rewrite_in_progress", digit(t.Saving))
	r.field("aof_rewrite_scheduled", 0)
	if s.store != nil {
		s.tellSnapshots(r, t)
		s.tellLog(r, t, logs)
	}
	if since != 0 {
		s.tellLoading(r, t, since)
	}
}

func (s *Server) tellSnapshots(r *report, t config.StoreStatus) {
	r.field("current_save_keys_processed", t.SaveKeysDone)
	r.field("current_save_keys_total", t.SaveKeys)
	r.field("rdb_changes_since_last_save", t.ChangesUnsaved)
	r.field("rdb_last_save_time", s.lastSave(t))
	r.field("rdb_last_bgsave_status", outcome(!t.LastSaveFailed))
	r.field("rdb_last_bgsave_time_sec", took(t))
	r.field("rdb_current_bgsave_time_sec", underWay(t, s.Clock()))
	r.field("rdb_saves", t.Saves)
	r.field("rdb_last_load_keys_expired", t.KeysExpired)
	r.field("rdb_last_load_keys_loaded", t.KeysLoaded)
}

func (s *Server) tellLog(r *report, t config.StoreStatus, logs bool) {
	r.field("aof_last_rewrite_time_sec", took(t))
	r.field("aof_current_rewrite_time_sec", underWay(t, s.Clock()))
	r.field("aof_last_bgrewrite_status", outcome(!t.LastSaveFailed))
	r.field("aof_last_write_status", outcome(t.Failure+t.Full == ""))
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

// diskState is a word for whether the log can be written: full while it waits for room, failed for good.
func diskState(t config.StoreStatus) string {
	switch {
	case t.Failure != "":
		return "failed"
	case t.Full != "":
		return "full"
	}
	return "ok"
}

// tellLoading tells how far the loading is that has begun at since, and by that when it will be through.
func (s *Server) tellLoading(r *report, t config.StoreStatus, since int64) {
	part, left, eta := 0.0, int64(1), int64(1) // what Redis says while it cannot know
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

// took is how many seconds the last snapshot took; -1: there was none.
func took(t config.StoreStatus) int64 {
	if t.LastSaveTook < 0 {
		return -1
	}
	return t.LastSaveTook / 1000
}

// underWay is for how many seconds a snapshot has been being taken; -1: none is.
func underWay(t config.StoreStatus, now int64) int64 {
	if !t.Saving {
		return -1
	}
	return (now - t.SaveStarted) / 1000
}

func digit(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func outcome(good bool) string {
	if good {
		return "ok"
	}
	return "err"
}
