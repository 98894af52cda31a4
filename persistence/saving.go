package persistence

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Snapshot takes a snapshot, and returns when it is on the disk and what it replaces is gone. The error is ErrBusy if one is being taken.
func (s *Store) Snapshot() error {
	if err := s.claim(); err != nil {
		return err
	}
	return s.take()
}

// SnapshotInBackground begins a snapshot; how it ends, Status and the log tell.
func (s *Store) SnapshotInBackground() error {
	if err := s.claim(); err != nil {
		return err
	}
	go s.take()
	return nil
}

func (s *Store) claim() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing.Load():
		return errClosing
	case s.busy:
		return ErrBusy
	}
	if err := s.Full(); err != nil { // what is in memory alone has to come before the snapshot
		s.status.LastFailed, s.tried = true, time.Now()
		return err
	}
	if err := s.openLate(); err != nil {
		s.status.LastFailed, s.tried = true, time.Now()
		return err
	}
	s.busy = true
	s.saving.Add(1)
	s.status.SaveStart = s.options.Clock()
	return nil
}

// openLate makes the directory that was not there when the store was opened. What another process has kept there since then is its own.
func (s *Store) openLate() error {
	if s.fs != nil {
		return nil
	}
	if err := s.open(); err != nil {
		return err
	}
	f, err := listFiles(s.fs)
	if err == nil && f.last() > 0 {
		err = fmt.Errorf("the data directory %s has come to hold the data of another server since this one was started", s.options.Dir)
	}
	if err != nil {
		s.lock.Close()
		s.fs, s.lock = nil, nil
	}
	return err
}

// take takes the snapshot that was claimed.
func (s *Store) take() error {
	defer s.saving.Done()
	start, changes := time.Now(), s.engine.Changes()
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
		s.log.Info("a snapshot was cut off as the server stops: the files before it stay")
		return err
	}
	if err != nil {
		s.log.Error("no snapshot", "error", err)
		return err
	}
	s.status.LastSave, s.status.Changes, s.status.SnapshotBytes = s.options.Clock(), changes, size // the end, as in Redis: clients wait for that to move
	s.saved = s.tried
	s.status.SizeAtSave = size + s.status.LogBytes
	s.status.Saves++
	s.log.Info("snapshot taken", "file", fileName(snapshotFile, sequence), "bytes", size, "keys", s.savedKeys.Load(), "took", time.Since(start).Round(time.Millisecond))
	return nil
}

// cut begins the segment that goes on from a snapshot, and gives its number.
func (s *Store) cut() uint64 {
	if l := s.journal.Load(); l != nil {
		return l.cut()
	}
	s.number++
	return s.number
}

// ready returns when the log has come to a segment. One that has failed will not: what it has is replaced by the snapshot.
func (s *Store) ready(sequence uint64) error {
	if l := s.journal.Load(); l != nil && l.err() == nil {
		return l.reached(sequence)
	}
	return nil
}

var errClosing = errors.New("the server stops")

// countSaved notes how far a snapshot is, and tells the log of it now and then.
func (s *Store) countSaved() func(done, total int64) error {
	told := time.Now()
	return func(done, total int64) error {
		s.savedKeys.Store(done)
		s.keysToSave.Store(total)
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			s.log.Info("taking a snapshot", "keys", done, "of", total)
		}
		if s.closing.Load() {
			return errClosing
		}
		return nil
	}
}

// removeBefore removes the files that a snapshot makes superfluous.
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
	logBytes := s.sizeOf(files{segments: slices.DeleteFunc(f.segments, before)})
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
	retryAfter   = time.Minute // how long after a snapshot that failed the next is tried
	remindAfter  = time.Minute // how often it is told that the log has failed
)

// maintain takes snapshots when they are due, and keeps telling of a log that has failed.
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
			s.log.Error("what changes is in memory alone, as the log has failed", "error", err)
		}
		if why := s.due(); why != "" {
			s.log.Info("beginning a snapshot", "because", why)
			if err := s.SnapshotInBackground(); err != nil && !errors.Is(err, ErrBusy) {
				s.log.Error("no snapshot", "error", err)
			}
		}
	}
}

// checkLogExists gives the log up if its segment is no longer in the directory: nobody would find it at the next start.
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

// due tells why a snapshot should be taken now; empty: none should.
func (s *Store) due() string {
	st, settings := s.Status(), s.settings.Load()
	s.mu.Lock()
	tried, saved, base := s.tried, s.saved, st.SizeAtSave
	s.mu.Unlock()
	if st.Saving || st.LastFailed && time.Since(tried) < retryAfter {
		return ""
	}
	size := st.LogBytes + st.SnapshotBytes
	if settings.GrowthPercent > 0 && s.options.AppendOnly && st.Failure == nil && st.Full == nil && size >= settings.GrowthMin && float64(size-base) >= float64(base)/100*float64(settings.GrowthPercent) {
		return "the log has grown"
	}
	since := time.Since(saved)
	for _, save := range settings.Save {
		if since >= save.After && st.Changes >= save.Changes {
			return fmt.Sprintf("%d changes in %v", st.Changes, since.Round(time.Second))
		}
	}
	return ""
}
