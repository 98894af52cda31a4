package main

import (
	"errors"
	"math"
	"time"

	"rlserver/persistence"
	"rlserver/resp"
	"rlserver/resp/config"
)

// store adapts a persistence.Store to resp.Store: settings, status and errors in the terms of
// Redis.
type store struct{ *persistence.Store }

// Refusal implements resp.Store.
func (s store) Refusal() string {
	switch err := s.Refuses(); {
	case err == nil:
	case s.Full() != nil:
		return "Errors writing to the AOF file, which is tried again: " + err.Error()
	default:
		return "Errors writing to the AOF file: " + err.Error()
	}
	return ""
}

// Save implements resp.Store.
func (s store) Save() error { return saving(s.Snapshot()) }

// SaveInBackground implements resp.Store.
func (s store) SaveInBackground() error { return saving(s.SnapshotInBackground()) }

func saving(err error) error {
	if errors.Is(err, persistence.ErrBusy) {
		return resp.ErrSaving
	}
	return err
}

// Configure implements resp.Store.
func (s store) Configure(settings config.StoreSettings) { s.Store.Configure(storeSettings(settings)) }

var syncModes = map[string]persistence.SyncMode{
	"always":   persistence.SyncAlways,
	"everysec": persistence.SyncEverySecond,
	"no":       persistence.SyncNever,
}

func storeSettings(s config.StoreSettings) persistence.Settings {
	settings := persistence.Settings{
		Sync: syncModes[s.AppendFsync], Continue: s.OnDiskFailure == "continue",
		GrowthPercent: s.RewritePercentage, GrowthMin: s.RewriteMinSize,
	}
	for _, point := range s.Save {
		settings.Save = append(settings.Save, persistence.Save{After: seconds64(point.Seconds), Changes: point.Changes})
	}
	return settings
}

// Status implements resp.Store.
func (s store) Status() config.StoreStatus {
	st := s.Store.Status()
	status := config.StoreStatus{
		Saving: st.Saving, SaveStarted: st.SaveStart, SaveKeysDone: st.SavedKeys, SaveKeys: st.KeysToSave,
		Saves:    st.Saves,
		LastSave: st.LastSave, LastSaveFailed: st.LastFailed, LastSaveTook: st.LastTook.Milliseconds(),
		ChangesUnsaved: st.Changes,
		LogSize:        st.SnapshotBytes + st.LogBytes, LogSizeAtSave: st.SizeAtSave,
		LogBuffered: st.Backlog, LogSyncsDelayed: st.DelayedSyncs,
		LoadTotal: st.ToLoad, LoadDone: st.Loaded, KeysLoaded: st.Keys, KeysExpired: st.Expired,
	}
	if st.LastTook == 0 {
		status.LastSaveTook = -1
	}
	if st.Failure != nil {
		status.Failure = st.Failure.Error()
	}
	if st.Full != nil {
		status.Full = st.Full.Error()
	}
	return status
}

// seconds64 returns n seconds, limited to the longest duration.
func seconds64(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/int64(time.Second))) * time.Second
}
