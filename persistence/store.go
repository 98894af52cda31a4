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
)

// Options say where a store is and how it works.
type Options struct {
	Dir        string
	AppendOnly bool // whether there is a log: else the state is only kept by snapshots
	Clock      func() int64
	Log        *slog.Logger
	Settings   Settings

	fs      fileSystem // of tests
	segment int64      // bytes, in tests
}

// Settings are what can change while the store is in use.
type Settings struct {
	Sync          SyncMode
	Continue      bool   // go on from memory alone when the disk fails, instead of refusing changes
	GrowthPercent int64  // take a snapshot when there is so much more than after the last; 0: never
	GrowthMin     int64  // but not below so many bytes
	Save          []Save // and when any of these is reached
}

// Save is a reason to take a snapshot: so many changes within so long a time since the last.
type Save struct {
	After   time.Duration
	Changes int64
}

// ErrBusy says that a snapshot is being taken already.
var ErrBusy = errors.New("a snapshot is being taken already")

// Store is a data directory in use: the log that an engine writes, and the snapshots that are taken of it. It is the engine's journal.
// Its methods may be called from any goroutine.
type Store struct {
	options  Options
	log      *slog.Logger
	fs       fileSystem
	lock     *os.File
	engine   *engine.Engine
	journal  atomic.Pointer[log] // nil until Start, and without AppendOnly
	settings atomic.Pointer[Settings]

	mu     sync.Mutex
	status Status    // but for what is asked of others
	busy   bool      // a snapshot is being taken
	tried  time.Time // when the last was, or was given up
	saved  time.Time // when the last that succeeded was, or the start
	saving sync.WaitGroup
	number uint64 // of the last file, where there is no log to ask

	loaded, toLoad        atomic.Int64 // bytes
	savedKeys, keysToSave atomic.Int64 // of the snapshot that is being taken

	closing    atomic.Bool
	quit, done chan struct{} // of maintain
}

// Status tells what a store does, as of now.
type Status struct {
	AppendOnly bool
	Settings   Settings
	Failure    error // of the log, for good; nil: it works
	Full       error // why the log cannot be written until there is room on the disk; nil: it can

	Load      Recovery
	LoadStart int64 // Unix ms
	Loaded    int64 // bytes of those to load
	ToLoad    int64
	Keys      int64 // loaded, and still there
	Expired   int64 // whose time had come meanwhile

	Saving     bool
	SaveStart  int64 // Unix ms: of the snapshot that is being taken
	SavedKeys  int64 // of those in it
	KeysToSave int64
	LastSave   int64 // Unix ms: of the last that succeeded, or the start
	LastFailed bool  // the last did not
	LastTook   time.Duration
	Saves      int64
	Changes    int64 // since the last that succeeded

	LogBytes      int64 // in the log, from the last snapshot on
	SnapshotBytes int64
	SizeAtSave    int64 // of both, after the last snapshot
	Backlog       int64 // bytes not yet written
	DelayedSyncs  int64 // that took longer than a second
}

// Open makes a directory this process' own, and makes it if there is none: without AppendOnly not before there is something to put there.
// The error says which process has it.
func Open(o Options) (*Store, error) {
	s := &Store{options: o, log: o.Log, fs: o.fs}
	s.settings.Store(&o.Settings)
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
		return fmt.Errorf("the data directory cannot be made: %w", err)
	}
	d := directory(s.options.Dir)
	lock, err := d.lock()
	if err != nil {
		return err
	}
	s.fs, s.lock = d, lock
	return nil
}

// Load brings an empty engine to the state that the directory holds, but for keys whose time has come, which Start deletes. It is called once.
func (s *Store) Load(e *engine.Engine) (Recovery, error) {
	s.engine = e
	s.set(func(st *Status) {
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
	s.toLoad.Store(s.sizeOf(f))
	r := recovery{fs: s.fs, e: e, read: s.countLoaded()}
	if err := r.load(f); err != nil {
		return r.Recovery, s.advised(err)
	}
	s.set(func(st *Status) {
		st.Load = r.Recovery
		for db := range e.Databases() {
			keys, _ := e.Size(db)
			st.Keys += int64(keys)
		}
		st.SnapshotBytes = s.sizeOf(files{snapshots: f.snapshots})
		st.LogBytes = s.sizeOf(files{segments: f.segments})
		st.SizeAtSave = st.SnapshotBytes // what the log has grown by since then is not known: as if that was nothing, so it may soon be due
	})
	s.number = f.last()
	return r.Recovery, nil
}

// countLoaded counts what is read, and tells the log of it now and then.
func (s *Store) countLoaded() func(n int) {
	told := time.Now()
	return func(n int) {
		loaded := s.loaded.Add(int64(n))
		if time.Since(told) > 2*time.Second {
			told = time.Now()
			s.log.Info("loading", "bytes", loaded, "of", s.toLoad.Load())
		}
	}
}

// sizeOf adds up files; one that cannot be asked counts nothing.
func (s *Store) sizeOf(f files) (sum int64) {
	add := func(kind fileKind, list []uint64) {
		for _, n := range list {
			if file, err := s.fs.open(fileName(kind, n)); err == nil {
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

// advised adds to an error what to do about it.
func (s *Store) advised(err error) error {
	if broken := (*damage)(nil); errors.As(err, &broken) {
		return fmt.Errorf("%w: the data in %s is damaged before its end; \"rlserver check %[2]s\" tells what can be read, and \"rlserver repair %[2]s\" cuts it there and keeps a copy", err, s.options.Dir)
	}
	return err
}

// Start begins a segment of the log, if there is to be one, deletes the keys whose time has come, and takes snapshots when they are
// due. Load must have been called.
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

// begin tidies the directory up and begins the log.
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
	l.setSyncMode(s.settings.Load().Sync) // Configure may have been called meanwhile
	return nil
}

// expire deletes the keys whose time had come before the start. The log is told, as of any other key that goes: what is made under
// such a name from now on is made in place of nothing.
func (s *Store) expire() {
	expired := s.engine.Stats().Expired
	s.mu.Lock()
	now := max(s.options.Clock(), s.status.Load.Last)
	s.mu.Unlock()
	for sweeper := s.engine.NewSweeper(); sweeper.Rounds() < 1; {
		sweeper.Step(now)
	}
	s.set(func(st *Status) {
		st.Expired = s.engine.Stats().Expired - expired
		st.Keys -= st.Expired
	})
}

func (s *Store) set(change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.status)
}

// Append is Append of engine.Journal.
func (s *Store) Append(now int64, effects []engine.Effect) engine.Position {
	if l := s.journal.Load(); l != nil {
		return l.Append(now, effects)
	}
	return 0
}

// Wait is Wait of engine.Journal. It returns no error while the store is to go on without the disk.
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

// Failure is what the log failed of for good, nil while it works. It is fast.
func (s *Store) Failure() error {
	if l := s.journal.Load(); l != nil {
		return l.err()
	}
	return nil
}

// Full is why the log cannot be written now though it is tried again: the disk is full. It is nil otherwise, and fast.
func (s *Store) Full() error {
	if l := s.journal.Load(); l != nil {
		if t := l.trouble.Load(); t != nil && !t.final {
			return t.err
		}
	}
	return nil
}

// Refuses is why changes are to be refused, nil while they are not. It is fast.
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

// full is told that the log has to wait for room on the disk.
func (s *Store) logStalled(err error) {
	what := "changes are refused until there is room"
	if s.settings.Load().Continue {
		what = "changes are kept in memory until there is room"
	}
	s.log.Error("the log cannot be written as the disk is full: "+what, "error", err, "waiting", s.journal.Load().backlog())
}

// roomAgain is told that the log has been written to its end after all.
func (s *Store) logResumed(after time.Duration) {
	s.log.Info("the log is written again: nothing is lost", "after", after.Round(time.Millisecond))
}

// failed is told of the end of the log.
func (s *Store) logFailed(err error) {
	switch {
	case s.closing.Load():
		s.log.Error("the log could not be written to its end", "error", err)
	case s.settings.Load().Continue:
		s.log.Error("the log has failed and is given up: what changes from now on is in memory alone", "error", err)
	default:
		s.log.Error("the log has failed and is given up: changes are refused from now on, until a restart", "error", err)
	}
}

// Configure changes the settings.
func (s *Store) Configure(settings Settings) {
	s.settings.Store(&settings)
	if l := s.journal.Load(); l != nil {
		l.setSyncMode(settings.Sync)
	}
}

// Status tells what there is to tell.
func (s *Store) Status() Status {
	s.mu.Lock()
	st := s.status
	st.Saving = s.busy
	s.mu.Unlock()
	st.AppendOnly, st.Settings, st.Failure = s.options.AppendOnly, *s.settings.Load(), s.Failure()
	st.Full = s.Full()
	st.Loaded, st.ToLoad = s.loaded.Load(), s.toLoad.Load()
	st.SavedKeys, st.KeysToSave = s.savedKeys.Load(), s.keysToSave.Load()
	st.Changes = s.changes() - st.Changes
	if l := s.journal.Load(); l != nil {
		st.LogBytes += l.size.Load()
		st.Backlog, st.DelayedSyncs = l.backlog(), l.delayed.Load()
	}
	return st
}

func (s *Store) changes() int64 {
	if s.engine == nil {
		return 0
	}
	return s.engine.Changes()
}

// Close gives up a snapshot that is being taken, writes what was appended, and lets go of the directory. What is appended after that is lost.
func (s *Store) Close() error { return s.CloseBy(context.Background()) }

// CloseBy is Close for a process that ends: a snapshot that waits for locks which a call never gives back is waited for until the context ends.
func (s *Store) CloseBy(ctx context.Context) (err error) {
	s.set(func(*Status) { s.closing.Store(true) }) // no snapshot is begun after this
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
	if s.lock != nil {
		s.lock.Close()
	}
	return err
}
