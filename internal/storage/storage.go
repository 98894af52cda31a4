// Package storage declares the interface between a server and its data on disk: the settings that
// CONFIG SET changes while the store runs, and the status that INFO shows. Package persistence
// implements it and package resp uses it; neither imports the other.
package storage

import (
	"errors"
	"time"
)

// ErrBusy reports that a snapshot is already being taken.
var ErrBusy = errors.New("a snapshot is being taken already")

// SyncMode is the setting --appendfsync: when the log is synced to the disk.
type SyncMode int32

const (
	SyncAlways      SyncMode = iota // before a call is acknowledged; concurrent calls share a sync
	SyncEverySecond                 // once a second
	SyncNever                       // when the operating system decides
)

// SyncModes are the modes by their values in --appendfsync.
var SyncModes = map[string]SyncMode{"always": SyncAlways, "everysec": SyncEverySecond, "no": SyncNever}

// Settings are the settings that can change while a store runs.
type Settings struct {
	Sync     SyncMode
	Continue bool // accept changes only in memory when the log has failed
	// take a snapshot when the data has grown by this since the last one; 0: never
	GrowthPercent int64
	GrowthMin     int64       // smallest size for that, in bytes
	Save          []SavePoint // take a snapshot when one of these is reached; immutable
}

// SavePoint is a reason to take a snapshot: a time since the last one, and a number of changes.
type SavePoint struct {
	Seconds int64 // 0 or more
	Changes int64 // 0 or more
}

// Status is the state of a store. Times are Unix ms.
type Status struct {
	AppendOnly bool
	Settings   Settings
	Failure    error // why the log has failed, which is final, or nil
	Full       error // why the log waits for disk space, or nil
	Stalled    error // that the disk does not answer, so that calls wait, or nil

	LoadStart int64
	Loaded    int64 // bytes loaded so far
	ToLoad    int64
	Keys      int64 // loaded and not expired
	Expired   int64 // keys that expired while the server was down

	Saving     bool
	SaveStart  int64 // of the current snapshot
	SavedKeys  int64 // written so far
	KeysToSave int64
	LastSave   int64         // end of the last successful snapshot, or start of the server
	LastFailed bool          // the last snapshot failed
	LastTook   time.Duration // duration of the last snapshot; 0: there was none
	Saves      int64         // snapshots started by this process
	Changes    int64         // changes since the last successful snapshot

	LogBytes      int64 // in the log since the last snapshot
	SnapshotBytes int64
	SizeAtSave    int64 // size of both, right after the last snapshot
	Backlog       int64 // bytes that wait to be written
	DelayedSyncs  int64 // syncs that took longer than a second; -1: not counted
	Appended      int64 // bytes appended to the log since the start
	Synced        int64 // how many of Appended are synced to the disk
}

// Disk returns failed until the server restarts, full while the log waits for free space, stalled
// while the disk does not answer, otherwise ok, and why.
func (s Status) Disk() (state, failure string) {
	switch {
	case s.Failure != nil:
		return "failed", s.Failure.Error()
	case s.Full != nil:
		return "full", s.Full.Error()
	case s.Stalled != nil:
		return "stalled", s.Stalled.Error()
	}
	return "ok", ""
}

// Size is the number of bytes of snapshot and log that a start would read.
func (s *Status) Size() int64 { return s.SnapshotBytes + s.LogBytes }
