package group

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// errRecovered ends the replica that Recover has used to read the log.
var errRecovered = errors.New("recovered")

// ErrEmpty reports that a replica has no state to recover.
var ErrEmpty = errors.New("the replica has no state")

// Recovered is what Recover has found.
type Recovered struct {
	Entries uint64 // index of the last entry that is kept
	Note    *Note  // nil: none
}

// truncatedFSM is for a log that may end between the parts of a record: they are dropped, as
// nothing follows them any more.
type truncatedFSM struct{ *fsm }

func (f truncatedFSM) Snapshot() (raft.FSMSnapshot, error) {
	f.partial = partial{}
	return f.fsm.Snapshot()
}

// Recover makes a replica that is not open the only member of its group, when a majority of the
// others is lost for ever. It keeps all entries that it has, also those that were not committed.
// What the lost members had committed without this one is lost.
func Recover(o Options) (r Recovered, err error) {
	g := newGroup(o)
	config := g.config(nil)
	state := &fsm{
		engine: o.Engine, time: g.time, follows: func(uint64) bool { return false },
		digested: func(Digest) {},
	}
	// no snapshot is taken of what cannot be applied, and the log stays
	state.broken = func(err error) { state.replica.Load().discard(err) }
	state.replica.Store(newReplica(o.Engine))
	err = g.withFiles(config, func(f files, trans raft.Transport) error {
		if has, err := raft.HasExistingState(f.cache, f.log, f.snapshots); err != nil || !has {
			return errors.Join(err, ErrEmpty)
		}
		alone := votersOf([]ReplicaID{o.id()})
		return raft.RecoverCluster(config, truncatedFSM{state}, f.cache, f.log, f.snapshots, trans, alone)
	})
	last := state.replica.Load()
	last.discard(errRecovered)
	last.Engine.Discard()
	return Recovered{state.index.Load(), state.note.Load()}, err
}

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
