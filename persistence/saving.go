package persistence

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"rlserver/internal/storage"
)

// Snapshot takes a snapshot, and returns when it is durable and the files that it replaces are
// removed. The error is storage.ErrBusy if a snapshot is already being taken.
func (s *Store) Snapshot() error {
	if err := s.beginSaving(); err != nil {
		return err
	}
	return s.take()
}

// SnapshotInBackground starts a snapshot. Status and the log report its result.
func (s *Store) SnapshotInBackground() error {
	if err := s.beginSaving(); err != nil {
		return err
	}
	go s.take()
	return nil
}

// beginSaving notes that a snapshot is being taken, or returns why none can be taken now.
func (s *Store) beginSaving() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing.Load():
		return errClosing
	case s.busy:
		return storage.ErrBusy
	}
	s.busy = true
	s.saving.Add(1)
	s.status.SaveStart = s.options.Clock()
	err := s.Full() // what waits in memory has to be written before the snapshot
	if err == nil {
		s.mu.Unlock() // the disk may hang
		err = s.openLate()
		s.mu.Lock()
	}
	if err != nil {
		s.busy, s.status.LastFailed, s.tried = false, true, time.Now()
		s.saving.Done()
	}
	return err
}

// openLate creates the directory that did not exist when the store was opened. It fails if another
// process has stored data there since then, or the directory was replaced.
func (s *Store) openLate() error {
	if d, ok := s.fs.(lockedDirectory); ok {
		return d.inPlace()
	}
	if s.fs != nil {
		return nil
	}
	if err := s.open(); err != nil {
		return err
	}
	f, err := listFiles(s.fs)
	if err == nil && f.last() > 0 {
		err = fmt.Errorf("another server has stored data in the directory %s since this one was started", s.options.Dir)
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lock.Close()
		s.fs, s.lock = nil, nil
	}
	return err
}

// take takes the snapshot. beginSaving must have succeeded.
func (s *Store) take() error {
	defer s.saving.Done()
	start, changes := time.Now(), s.engine.Memory().Changes()
	sequence, size, err := writeSnapshot(s.fs, s.engine, s.options.Clock, s.cut, s.ready, s.countSaved())
	if err == nil {
		err = s.removeBefore(sequence)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	s.status.LastTook = time.Since(start)
	s.status.LastFailed = err != nil
	s.tried = time.Now()
	if errors.Is(err, errClosing) {
		s.log.Info("a snapshot was canceled because the server stops: the older files are kept")
		return err
	}
	if err != nil {
		s.log.Error("the snapshot has failed", "error", err)
		return err
	}
	// the end, as in Redis: clients wait for LASTSAVE to change
	s.status.LastSave, s.status.Changes, s.status.SnapshotBytes = s.options.Clock(), changes, size
	s.saved = s.tried
	if s.options.ObserveSnapshot != nil {
		s.options.ObserveSnapshot(s.status.LastTook)
	}
	s.status.SizeAtSave = size + s.status.LogBytes
	s.status.Saves++
	s.log.Info("snapshot taken", "file", fileName(snapshotFile, sequence), "bytes", size, "keys", s.savedKeys.Load(),
		"took", time.Since(start).Round(time.Millisecond))
	return nil
}

// cut begins the segment that follows a snapshot, and returns its number.
func (s *Store) cut() uint64 {
	if l := s.journal.Load(); l != nil {
		return l.cut()
	}
	s.number++
	return s.number
}

// ready returns when the log has reached a segment. A failed log never does: the snapshot replaces
// it.
func (s *Store) ready(sequence uint64) error {
	if l := s.journal.Load(); l != nil && l.err() == nil {
		return l.reached(sequence)
	}
	return nil
}

var errClosing = errors.New("the server is stopping")

// countSaved returns a function that records the progress of a snapshot, and logs it.
func (s *Store) countSaved() func(done, total int64) error {
	logged := time.Now()
	return func(done, total int64) error {
		s.savedKeys.Store(done)
		s.keysToSave.Store(total)
		if time.Since(logged) > 10*time.Second {
			logged = time.Now()
			s.log.Info("taking a snapshot", "keys", done, "of", total)
		}
		if s.closing.Load() {
			return errClosing
		}
		return nil
	}
}

// removeBefore removes the files that a snapshot replaces.
func (s *Store) removeBefore(snapshot uint64) error {
	f, err := listFiles(s.fs)
	if err != nil {
		return err
	}
	before := func(n uint64) bool { return n < snapshot }
	for kind, list := range f.inOrder() {
		for _, n := range list {
			if before(n) {
				err = errors.Join(err, s.fs.remove(fileName(kind, n)))
			}
		}
	}
	logBytes := sizeOf(s.fs, files{segments: slices.DeleteFunc(f.segments, before)})
	s.mu.Lock()
	s.status.LogBytes = logBytes
	if l := s.journal.Load(); l != nil {
		l.size.Store(0)
	}
	s.mu.Unlock()
	return errors.Join(err, s.fs.syncDir())
}

const (
	maintainTick = 500 * time.Millisecond
	retryAfter   = time.Minute // between a failed snapshot and the next attempt
	remindAfter  = time.Minute // between log lines that say that the log has failed
)

// maintain takes snapshots when they are due, and logs each minute that the log has failed.
func (s *Store) maintain() {
	defer close(s.done)
	ticker := time.NewTicker(maintainTick)
	defer ticker.Stop()
	reminded := time.Now()
	for {
		select {
		case <-s.quit:
			return
		case <-ticker.C:
		}
		s.checkLogExists()
		if err := s.Failure(); err != nil && s.settings.Load().Continue && time.Since(reminded) >= remindAfter {
			reminded = time.Now()
			s.log.Error("changes are in memory alone, because the log has failed", "error", err)
		}
		if why := s.due(); why != "" {
			s.log.Info("beginning a snapshot", "because", why)
			if err := s.SnapshotInBackground(); err != nil && !errors.Is(err, storage.ErrBusy) {
				s.log.Error("the snapshot has failed", "error", err)
			}
		}
	}
}

// checkLogExists makes the log fail if its segment is no longer in the directory: the next start
// would not find it.
func (s *Store) checkLogExists() {
	l := s.journal.Load()
	if l == nil || l.err() != nil {
		return
	}
	if err := l.inPlace(); err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.giveUp(fmt.Errorf("the log is gone from the data directory: %w", err))
	}
}

// due returns why a snapshot should be taken now; "" if none should.
func (s *Store) due() string {
	st, settings := s.Status(), s.settings.Load()
	s.mu.Lock()
	tried, saved, base := s.tried, s.saved, st.SizeAtSave
	s.mu.Unlock()
	if st.Saving || st.LastFailed && time.Since(tried) < retryAfter {
		return ""
	}
	size := st.LogBytes + st.SnapshotBytes
	if settings.GrowthPercent > 0 && s.options.AppendOnly && st.Failure == nil && st.Full == nil &&
		size >= settings.GrowthMin &&
		float64(size-base) >= float64(base)/100*float64(settings.GrowthPercent) {
		return "the log has grown"
	}
	since := time.Since(saved)
	for _, save := range settings.Save {
		if since.Seconds() >= float64(save.Seconds) && st.Changes >= save.Changes {
			return fmt.Sprintf("%d changes in %v", st.Changes, since.Round(time.Second))
		}
	}
	return ""
}
