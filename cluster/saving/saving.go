package saving

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"rlserver/internal/storage"
)

// Group is a replica of a group.
type Group interface {
	// Snapshot takes a snapshot, and returns when it is on the disk.
	Snapshot() error
	// Sizes returns the bytes of the log since the last snapshot, and of that snapshot.
	Sizes() (log, snapshot int64)
}

// Options configure a Store. All are required.
type Options struct {
	Groups   func() []Group // those that the node has a replica of now
	Changes  func() int64   // effects of all calls since the start
	Now      func() int64   // Unix ms
	Log      *slog.Logger
	Settings storage.Settings
	Took     func(time.Duration) // is called after each save
	// SetSync applies storage.Settings.Sync.
	SetSync func(storage.SyncMode) error
}

// Store takes snapshots of all groups. Its methods are safe for concurrent use.
type Store struct {
	o Options

	mu     sync.Mutex
	status storage.Status
	saved  int64 // Options.Changes at the last successful save
}

// New returns a Store.
func New(o Options) *Store {
	return &Store{o: o, status: storage.Status{
		AppendOnly: true, Settings: o.Settings, LastSave: o.Now(), DelayedSyncs: -1,
	}}
}

// Refusal implements storage.Store. A group whose disk fails gives up its leadership instead.
func (*Store) Refusal() string { return "" }

// Snapshot implements storage.Store.
func (s *Store) Snapshot() error {
	if err := s.begin(); err != nil {
		return err
	}
	return s.save()
}

// SnapshotInBackground implements storage.Store.
func (s *Store) SnapshotInBackground() error {
	if err := s.begin(); err != nil {
		return err
	}
	go s.save()
	return nil
}

func (s *Store) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.Saving {
		return storage.ErrBusy
	}
	s.status.Saving, s.status.SaveStart = true, s.o.Now()
	s.status.Saves++
	return nil
}

// save ends what begin has begun.
func (s *Store) save() (err error) {
	start, changes := time.Now(), s.o.Changes()
	groups := s.o.Groups()
	for i, g := range groups {
		if failed := g.Snapshot(); failed != nil {
			err = errors.Join(err, fmt.Errorf("group %d of %d: %w", i+1, len(groups), failed))
		}
	}
	took := time.Since(start)
	s.o.Took(took)
	if err != nil {
		s.o.Log.Warn("not all groups could be saved", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Saving, s.status.LastTook, s.status.LastFailed = false, took, err != nil
	if err == nil {
		s.status.LastSave, s.saved = s.o.Now(), changes
	}
	return err
}

// Configure implements storage.Store.
func (s *Store) Configure(settings storage.Settings) {
	if err := s.o.SetSync(settings.Sync); err != nil {
		s.o.Log.Error("appendfsync stays as it was", "error", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.status.Settings = settings
}

// Status implements storage.Store. The sizes are those of the logs and snapshots of all groups.
func (s *Store) Status() storage.Status {
	s.mu.Lock()
	t := s.status
	t.Changes = max(0, s.o.Changes()-s.saved)
	s.mu.Unlock()
	for _, g := range s.o.Groups() {
		log, snapshot := g.Sizes()
		t.LogBytes, t.SnapshotBytes = t.LogBytes+log, t.SnapshotBytes+snapshot
	}
	t.SizeAtSave = t.SnapshotBytes
	return t
}
