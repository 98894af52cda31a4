package group

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// ErrNoSnapshot reports that a replica has no snapshot yet.
var ErrNoSnapshot = errors.New("it has no snapshot")

const (
	snapshotFolder = "snapshots" // of raft's file store
	copyTries      = 10          // a newer snapshot may replace the one that is being copied
)

// CopySnapshot copies the latest snapshot of a replica, which may be open, from one folder to
// another, and returns when it was taken.
func CopySnapshot(from, to string) (taken time.Time, err error) {
	for range copyTries {
		var latest snapshotName
		if latest, err = latestSnapshot(from); err != nil {
			return taken, err
		}
		source := filepath.Join(from, snapshotFolder, latest.String())
		target := filepath.Join(to, snapshotFolder, latest.String())
		if err = os.CopyFS(target, os.DirFS(source)); err == nil {
			return time.UnixMilli(latest.at), nil
		}
		if err = errors.Join(err, os.RemoveAll(target)); !errors.Is(err, fs.ErrNotExist) {
			return taken, err
		}
	}
	return taken, err
}

// snapshotName is the name of a snapshot's folder.
type snapshotName struct {
	term, index uint64
	at          int64 // Unix ms
}

func (s snapshotName) String() string { return fmt.Sprintf("%d-%d-%d", s.term, s.index, s.at) }

func latestSnapshot(dir string) (latest snapshotName, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, snapshotFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return latest, err
	}
	for _, e := range entries {
		var s snapshotName
		// what is still being written has another name
		if _, err := fmt.Sscanf(e.Name(), "%d-%d-%d", &s.term, &s.index, &s.at); err == nil && s.String() == e.Name() {
			if slices.Compare([]uint64{s.term, s.index, uint64(s.at)},
				[]uint64{latest.term, latest.index, uint64(latest.at)}) > 0 {
				latest = s
			}
		}
	}
	if latest == (snapshotName{}) {
		return latest, ErrNoSnapshot
	}
	return latest, nil
}
