package storage

import (
	"errors"
	"time"
)

// Store keeps the data on disk. Without a Store the data is in memory alone, and SAVE and similar
// commands return an error that says how to enable it. Any goroutine may call the methods.
type Store interface {
	// Refusal returns why changes are refused now, as the text after MISCONF; "": they are
	// accepted. It is called before each such command, so it must be fast.
	Refusal() string
	// Snapshot takes a snapshot and returns when it is on the disk. It returns ErrBusy if
	// one is being taken already.
	Snapshot() error
	// SnapshotInBackground starts a snapshot. It returns ErrBusy if one is being taken
	// already.
	SnapshotInBackground() error
	// Configure applies what CONFIG SET has changed. Calls do not overlap.
	Configure(Settings)
	// Status may be called under locks of the engine: it must not wait for a goroutine that takes
	// them.
	Status() Status
}

// retryInterval is how often SnapshotAfterCurrent tries while a snapshot is being taken.
const retryInterval = 10 * time.Millisecond

// SnapshotAfterCurrent takes a snapshot. If one is being taken already, it waits for that one to
// end first, as that lacks the last changes.
func SnapshotAfterCurrent(s Store) error {
	for {
		err := s.Snapshot()
		if !errors.Is(err, ErrBusy) {
			return err
		}
		time.Sleep(retryInterval)
	}
}
