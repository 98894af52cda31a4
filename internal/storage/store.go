package storage

import (
	"errors"
	"time"
)

// Store keeps the data on disk. Without a Store the data is only in memory, and SAVE and similar
// commands return an error with the setting that enables it. Any goroutine may call the methods.
type Store interface {
	// Refusal returns the reason why changes are refused now, as the text after MISCONF, or "". It
	// is called before each command that writes, so it must be fast.
	Refusal() string
	// Snapshot takes a snapshot and returns when it is on the disk. It returns ErrBusy if a
	// snapshot is being taken already.
	Snapshot() error
	// SnapshotInBackground starts a snapshot. It returns ErrBusy if a snapshot is being taken
	// already.
	SnapshotInBackground() error
	// Configure applies settings after CONFIG SET. Calls must not overlap.
	Configure(Settings)
	// Status may be called while locks of the engine are held, so it must not wait for a goroutine
	// that takes them.
	Status() Status
}

// retryInterval is the time between attempts of SnapshotAfterCurrent while a snapshot is being
// taken.
const retryInterval = 10 * time.Millisecond

// SnapshotAfterCurrent takes a snapshot. If one is being taken already, it first waits for its end,
// because that one lacks the latest changes.
func SnapshotAfterCurrent(s Store) error {
	for {
		err := s.Snapshot()
		if !errors.Is(err, ErrBusy) {
			return err
		}
		time.Sleep(retryInterval)
	}
}
