package persistence

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/engine"
	"rlserver/internal/storage"
)

// Options are the options of Open.
type Options struct {
	Dir        string
	AppendOnly bool // whether there is a log; otherwise there are only snapshots
	Clock      func() int64
	Log        *slog.Logger
	Settings   storage.Settings

	Progress Progress // of Load; nil: it is not reported

	// ObserveSync and ObserveSnapshot are called with the duration of each successful sync of the
	// log and of each snapshot; may be nil.
	ObserveSync, ObserveSnapshot func(took time.Duration)

	fs      fileSystem // set by tests
	segment int64      // size of a segment in bytes, set by tests
}

// Store is a data directory in use: the log that an engine writes, and snapshots of the engine. It
// is the engine's journal. Its methods are safe for concurrent use.
type Store struct {
	options  Options
	log      *slog.Logger
	fs       fileSystem
	lock     *os.File
	engine   *engine.Engine
	journal  atomic.Pointer[log] // nil until Start, and without AppendOnly
	settings atomic.Pointer[storage.Settings]

	mu       sync.Mutex
	status   storage.Status // except for what Status computes
	recovery Recovery       // the result of Load
	busy     bool           // a snapshot is being taken
	tried    time.Time      // when the last snapshot ended, or failed
	saved    time.Time      // when the last successful snapshot ended, or the start
	saving   sync.WaitGroup
	number   uint64 // number of the last file, while there is no log

	loaded, toLoad        atomic.Int64 // bytes
	savedKeys, keysToSave atomic.Int64 // in the current snapshot

	answers    atomic.Int64 // see Answers
	closing    atomic.Bool
	quit, done chan struct{} // of maintain
}

// Open locks a directory for this process, and creates it if it does not exist. Without AppendOnly
// it is created with the first snapshot. If another process uses the directory, the error names it.
func Open(o Options) (*Store, error) {
	s := &Store{options: o, log: o.Log, fs: o.fs}
	s.settings.Store(&o.Settings)
	if o.Progress == nil {
		s.options.Progress = NoProgress{}
	}
	if o.segment == 0 {
		s.options.segment = segmentSize
	}
	if _, err := os.Stat(o.Dir); s.fs == nil && !o.AppendOnly && errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	return s, s.open()
}

func (s *Store) open() error {
	if s.fs != nil {
		return nil
	}
	if err := makeDirectory(s.options.Dir); err != nil {
		return fmt.Errorf("the data directory cannot be created: %w", err)
	}
	d := directory(s.options.Dir)
	lock, err := d.lock()
	if err != nil {
		return err
	}
	place, err := os.Stat(s.options.Dir)
	if err != nil {
		lock.Close()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fs, s.lock = lockedDirectory{d, place, lock, &s.answers}, lock
	return nil
}

// Load loads the state in the directory into an empty engine. Start deletes the keys that have
// expired. It is called once.
func (s *Store) Load(e *engine.Engine) (Recovery, error) {
	s.set(func(st *storage.Status) { // Status may be called while the data is being loaded
		s.engine = e
		s.saved = time.Now()
		st.LoadStart = s.options.Clock()
		st.LastSave = st.LoadStart
	})
	if s.fs == nil {
		return Recovery{}, nil
	}
	f, err := listFiles(s.fs)
	if err != nil {
		return Recovery{}, err
	}
	s.toLoad.Store(sizeOf(s.fs, f))
	progress := s.options.Progress
	progress.Begin("loading", s.toLoad.Load())
	defer progress.End()
	r := recovery{fs: s.fs, e: e, read: func(n int) {
		s.loaded.Add(int64(n))
		progress.Add(n)
	}}
	if err := r.load(f); err != nil {
		return r.Recovery, s.advised(err)
	}
	s.set(func(st *storage.Status) {
		s.recovery = r.Recovery
		for db := range e.Databases() {
			keys, _ := e.Size(db)
			st.Keys += int64(keys)
		}
		st.SnapshotBytes = sizeOf(s.fs, files{snapshots: f.snapshots})
		st.LogBytes = sizeOf(s.fs, files{segments: f.segments})
		// how far the log had grown then is unknown, so a snapshot may soon be due
		st.SizeAtSave = st.SnapshotBytes
	})
	s.number = f.last()
	return r.Recovery, nil
}

// sizeOf returns the size of files in bytes. A file that cannot be read counts as 0.
func sizeOf(fs fileSystem, f files) (sum int64) {
	add := func(kind fileKind, list []uint64) {
		for _, n := range list {
			if file, err := fs.open(fileName(kind, n)); err == nil {
				size, _ := file.size()
				sum += size
				file.Close()
			}
		}
	}
	add(snapshotFile, f.snapshots)
	add(logFile, f.segments)
	return sum
}

// advised adds to an error what the operator can do about it.
func (s *Store) advised(err error) error {
	if broken := (*damage)(nil); errors.As(err, &broken) {
		return fmt.Errorf(
			"%w: the data in %s is damaged before its end; \"rlserver check %[2]s\" reports what can be read, "+
				"and \"rlserver repair %[2]s\" cuts it there and keeps a copy",
			err,
			s.options.Dir,
		)
	}
	return err
}

// Start begins a segment of the log, if there is one, deletes expired keys, and from then on takes
// snapshots when they are due. Load must have been called.
func (s *Store) Start() error {
	if s.fs != nil {
		if err := s.begin(); err != nil {
			return err
		}
	}
	s.expire()
	s.quit, s.done = make(chan struct{}), make(chan struct{})
	go s.maintain()
	return nil
}

// begin removes unfinished files and begins the log.
func (s *Store) begin() error {
	f, err := listFiles(s.fs)
	if err != nil {
		return err
	}
	for _, name := range f.unfinished {
		if err := s.fs.remove(name); err != nil {
			return err
		}
	}
	if !s.options.AppendOnly {
		return nil
	}
	l, err := newLog(s.fs, s.options.Clock, f.next(), s.settings.Load().Sync, s.options.segment, s)
	if err != nil {
		return err
	}
	s.journal.Store(l)
	l.setSyncMode(s.settings.Load().Sync) // Configure may have been called in between
	return nil
}

// expire deletes the keys that expired before the start. That is logged like any deletion, so that
// a replay of later effects on these names finds no key.
func (s *Store) expire() {
	expired := s.engine.Memory().Stats().Expired
	s.mu.Lock()
	now := max(s.options.Clock(), s.recovery.Last)
	s.mu.Unlock()
	for sweeper := s.engine.NewSweeper(); sweeper.Rounds() < 1; {
		sweeper.Step(now)
	}
	s.set(func(st *storage.Status) {
		st.Expired = s.engine.Memory().Stats().Expired - expired
		st.Keys -= st.Expired
	})
}

func (s *Store) set(change func(*storage.Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status)
}

// Append implements engine.Journal.
func (s *Store) Append(now int64, effects []byte) engine.Position {
	if l := s.journal.Load(); l != nil {
		return l.Append(now, effects)
	}
	return 0
}

// Wait implements engine.Journal. It returns no error if Settings.Continue is set.
func (s *Store) Wait(p engine.Position) error {
	l := s.journal.Load()
	if l == nil {
		return nil
	}
	err := l.Wait(p)
	if err != nil && s.settings.Load().Continue {
		return nil
	}
	return err
}

// Failure returns why the log has failed, nil while it works. It is fast.
func (s *Store) Failure() error {
	if l := s.journal.Load(); l != nil {
		return l.err()
	}
	return nil
}

// Full returns why the log has to wait for disk space, nil while it does not. It is fast.
func (s *Store) Full() error {
	if l := s.journal.Load(); l != nil {
		if t := l.trouble.Load(); t != nil && !t.final {
			return t.err
		}
	}
	return nil
}

// Stalled returns an error while the disk does not answer, or is too slow. Otherwise it is fast.
func (s *Store) Stalled() error {
	if l := s.journal.Load(); l != nil && l.err() == nil {
		if late := l.lateFor(); late > 0 {
			return fmt.Errorf("the disk of %s has not answered for %v: changes wait", s.options.Dir,
				late.Round(time.Second))
		}
	}
	return nil
}

// Answers returns a number that grows while the disk does what the store asks of it.
func (s *Store) Answers() int64 { return s.answers.Load() }

// Refuses returns why changes are refused, nil while they are not. It is fast.
func (s *Store) Refuses() error {
	l := s.journal.Load()
	if l == nil {
		return nil
	}
	t := l.trouble.Load()
	if t == nil || s.settings.Load().Continue {
		return nil
	}
	return t.err
}

// logSynced implements observer.
func (s *Store) logSynced(took time.Duration) {
	if s.options.ObserveSync != nil {
		s.options.ObserveSync(took)
	}
}

// logStalled implements observer.
func (s *Store) logStalled(err error) {
	what := "changes are refused until there is space"
	if s.settings.Load().Continue {
		what = "changes are kept in memory until there is space"
	}
	s.log.Error("the log cannot be written because the disk is full: "+what, "error", err, "waiting",
		s.journal.Load().backlog())
}

// logResumed implements observer.
func (s *Store) logResumed(after time.Duration) {
	s.log.Info("the log is written again: nothing is lost", "after", after.Round(time.Millisecond))
}

// logLate implements observer.
func (s *Store) logLate() {
	s.log.Error("the disk does not answer: calls that change keys wait for it", "dir", s.options.Dir)
}

// logInTime implements observer.
func (s *Store) logInTime(after time.Duration) {
	s.log.Info("the disk answers again: no call waits for it any more", "after", after.Round(time.Millisecond))
}

// logFailed implements observer.
func (s *Store) logFailed(err error) {
	switch {
	case s.closing.Load():
		s.log.Error("the log could not be written to its end", "error", err)
	case s.settings.Load().Continue:
		s.log.Error("the log has failed and is closed: changes from now on are in memory alone", "error", err)
	default:
		s.log.Error("the log has failed and is closed: changes are refused until a restart", "error", err)
	}
}

// Configure changes the settings.
func (s *Store) Configure(settings storage.Settings) {
	s.settings.Store(&settings)
	if l := s.journal.Load(); l != nil {
		l.setSyncMode(settings.Sync)
	}
}

// Recovery returns the result of Load.
func (s *Store) Recovery() Recovery {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recovery
}

// Status returns the current state.
func (s *Store) Status() storage.Status {
	s.mu.Lock()
	st := s.status
	st.Saving = s.busy
	st.Changes = s.changes() - st.Changes
	s.mu.Unlock()
	st.AppendOnly, st.Settings, st.Failure = s.options.AppendOnly, *s.settings.Load(), s.Failure()
	st.Full, st.Stalled = s.Full(), s.Stalled()
	st.Loaded, st.ToLoad = s.loaded.Load(), s.toLoad.Load()
	st.SavedKeys, st.KeysToSave = s.savedKeys.Load(), s.keysToSave.Load()
	if l := s.journal.Load(); l != nil {
		st.LogBytes += l.size.Load()
		st.Backlog, st.DelayedSyncs = l.backlog(), l.delayed.Load()
		st.Synced = int64(l.synced.Load()) // read before end, as it is never above it
		st.Appended = int64(l.end())
	}
	return st
}

// changes returns how many changes the engine has made. Before Load returns, mu is held.
func (s *Store) changes() int64 {
	if s.engine == nil {
		return 0
	}
	return s.engine.Memory().Changes()
}

// Close cancels a snapshot in progress, writes all appended effects, and unlocks the directory.
// Effects appended after that are lost.
func (s *Store) Close() error { return s.CloseBy(context.Background()) }

// CloseBy is Close for a process that ends: it waits for a snapshot in progress, which may itself
// wait for a lock, only until the context ends.
func (s *Store) CloseBy(ctx context.Context) (err error) {
	s.set(func(*storage.Status) { s.closing.Store(true) }) // no snapshot begins after this
	if s.quit != nil {
		close(s.quit)
		<-s.done
	}
	saved := make(chan struct{})
	go func() {
		s.saving.Wait()
		close(saved)
	}()
	select {
	case <-saved:
	case <-ctx.Done():
	}
	if l := s.journal.Load(); l != nil {
		err = l.close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock != nil {
		s.lock.Close()
	}
	return err
}
