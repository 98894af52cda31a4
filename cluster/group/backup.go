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
			return time.UnixMilli(int64(latest[2])), nil
		}
		if err = errors.Join(err, os.RemoveAll(target)); !errors.Is(err, fs.ErrNotExist) {
			return taken, err
		}
	}
	return taken, err
}

// snapshotName is the name of a snapshot's folder: its term, its index, and when it was taken, Unix
// ms.
type snapshotName [3]uint64

func (s snapshotName) String() string { return fmt.Sprintf("%d-%d-%d", s[0], s[1], s[2]) }

func latestSnapshot(dir string) (latest snapshotName, err error) {
	entries, err := os.ReadDir(filepath.Join(dir, snapshotFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return latest, err
	}
	for _, e := range entries {
		var s snapshotName
		// what is still being written has another name
		_, err := fmt.Sscanf(e.Name(), "%d-%d-%d", &s[0], &s[1], &s[2])
		if err == nil && s.String() == e.Name() && slices.Compare(s[:], latest[:]) > 0 {
			latest = s
		}
	}
	if latest == (snapshotName{}) {
		return latest, ErrNoSnapshot
	}
	return latest, nil
}
