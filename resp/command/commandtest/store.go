package commandtest

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"rlserver/engine"
	"rlserver/engine/effect"
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

// Mirror is a journal that applies all changes to a second engine, which then holds what a restart,
// or another node, would hold. It is safe for concurrent use.
type Mirror struct {
	t      testing.TB
	engine *engine.Engine
}

// NewMirror returns an empty mirror of an engine with this number of databases.
func NewMirror(t testing.TB, databases int) *Mirror {
	return &Mirror{t, engine.New(engine.Options{Databases: databases, Seed: [2]uint64{9, 9}, Shards: 2})}
}

// Append implements engine.Journal. Nothing that the mirror keeps may point into the effects, whose
// bytes it overwrites at the end.
func (m *Mirror) Append(at int64, effects []byte) engine.Position {
	in := effect.Reader{Rest: slices.Clone(effects)}
	text, list := in.Rest, []effect.Effect(nil)
	for len(in.Rest) > 0 && in.Err == nil {
		list = in.Append(list)
	}
	assert.NoError(m.t, in.Err)
	assert.NoError(m.t, m.engine.Apply(at, list))
	clear(text)
	return 1
}

// Wait implements engine.Journal. It returns at once.
func (m *Mirror) Wait(engine.Position) error { return nil }

// Compare fails the test unless the engine whose journal this is holds the same as the mirror,
// apart from keys that have expired at now, Unix ms.
func (m *Mirror) Compare(e *engine.Engine, now int64) {
	m.t.Helper()
	if sum(e, now) == sum(m.engine, now) {
		return
	}
	memory, journal := Contents(e, now), Contents(m.engine, now)
	m.t.Errorf("memory and journal differ.\nOnly in memory: %s\nOnly in the journal: %s",
		without(memory, journal), without(journal, memory))
}

// without returns the first lines that are not among others.
func without(lines, others []string) (list []string) {
	for _, line := range lines {
		if _, found := slices.BinarySearch(others, line); !found && len(list) < 10 {
			list = append(list, fmt.Sprintf("\n%.400s (%d bytes)", line, len(line)))
		}
	}
	return list
}

// Contents returns all policies, keys and values of an engine, apart from keys that have expired at
// now, Unix ms.
func Contents(e *engine.Engine, now int64) (lines []string) {
	visit(e, now, func(f *effect.Effect) {
		lines = append(lines, fmt.Sprintf("%v %d %q %q %q %v %v %v %v %v %d", f.Kind, f.DB, f.Key.Name, f.Field,
			f.Value, f.Score, f.Hits, f.Tokens, f.Count, f.Counts, f.ExpireAt))
	})
	slices.Sort(lines)
	return lines
}

// sum returns a digest of Contents.
func sum(e *engine.Engine, now int64) (sum uint64) {
	var text []byte
	visit(e, now, func(f *effect.Effect) {
		text = effect.Append(text[:0], f)
		sum += maphash.Bytes(seed, text)
	})
	return sum
}

var seed = maphash.MakeSeed()

func visit(e *engine.Engine, now int64, visit func(*effect.Effect)) {
	s := e.SnapshotAt(now, func() {})
	for s.Step(func(effects []effect.Effect) {
		for i := range effects {
			visit(&effects[i])
		}
	}) {
	}
}
