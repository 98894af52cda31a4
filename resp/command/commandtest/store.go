package commandtest

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"rlserver/engine"
	"rlserver/internal/storage"
)

// Store is a store that does what the test sets, and records its calls. Set guards the fields.
type Store struct {
	Why        atomic.Pointer[string] // what Refusal returns; nil: nothing
	mu         sync.Mutex
	Errs       []error // results of the next snapshots; if empty, they succeed
	State      storage.Status
	snapshots  []string // how each successful one was requested: save or background
	Configured []storage.Settings
	Locks      *engine.Engine // each snapshot takes its locks; may be nil
}

// Set changes fields of the store under its lock.
func (f *Store) Set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *Store) Refusal() string {
	if why := f.Why.Load(); why != nil {
		return *why
	}
	return ""
}

func (f *Store) Snapshot() error             { return f.snapshot("save") }
func (f *Store) SnapshotInBackground() error { return f.snapshot("background") }

func (f *Store) snapshot(how string) error {
	if f.Locks != nil {
		tx := f.Locks.NewTx()
		tx.BeginAll(0, 0, false)
		tx.End()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.Errs) > 0 {
		err := f.Errs[0]
		f.Errs = f.Errs[1:]
		return err
	}
	f.snapshots = append(f.snapshots, how)
	f.State.Saves++
	return nil
}

func (f *Store) Configure(s storage.Settings) {
	f.Set(func() { f.Configured = append(f.Configured, s) })
}

func (f *Store) Status() storage.Status {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.State
}

// Taken returns how the snapshots so far were requested.
func (f *Store) Taken() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.snapshots, " ")
}

// ErrDisk is an error of a disk.
var ErrDisk = errors.New("no space left on device")

// BrokenJournal is a journal that accepts all effects, and fails to make them durable.
type BrokenJournal struct{}

func (BrokenJournal) Append(int64, []byte) engine.Position { return 1 }
func (BrokenJournal) Wait(engine.Position) error           { return ErrDisk }
