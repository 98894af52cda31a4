package storage

import (
	"errors"
	"sync"
	"time"
)

// Saves starts the snapshots that clients request, as background saves or as rewrites of the log:
// to a Store both are the same, but the replies of Redis differ. Any goroutine may call the
// methods.
type Saves struct {
	store  Store
	failed func(error)

	mu            sync.Mutex // not held while a snapshot is started
	rewrite       int64      // Status.Saves of the last rewrite; -1: there was none
	saveNext      bool       // a save is scheduled
	rewriteNext   bool       // a rewrite is scheduled
	waitingForEnd bool       // a goroutine starts them later
}

// Reasons why a snapshot is not started, beside ErrBusy: a save is running.
var (
	ErrRewriting = errors.New("the log is being rewritten already")
	ErrOther     = errors.New("the log is being rewritten")
)

// NewSaves returns the Saves of a store. failed is called if a scheduled snapshot cannot be
// started.
func NewSaves(store Store, failed func(error)) *Saves {
	return &Saves{store: store, failed: failed, rewrite: -1}
}

// Running reports whether a snapshot is being taken, whether it is a rewrite that a client has
// requested, and whether such a rewrite is scheduled.
func (s *Saves) Running() (saving, rewrite, scheduled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.store.Status()
	return t.Saving, t.Saving && t.Saves == s.rewrite, s.rewriteNext
}

// Save starts a save. While the log is being rewritten, schedule decides whether it is started
// after that. later means that it is only scheduled, for Start.
func (s *Saves) Save(schedule, later bool) (scheduled bool, err error) {
	switch saving, rewriting, _ := s.Running(); {
	case saving && !rewriting:
		return false, ErrBusy
	case rewriting && !schedule && !later:
		return false, ErrOther
	case rewriting || later:
		s.schedule(false)
		return true, nil
	}
	return false, s.start(false)
}

// Rewrite starts a rewrite, after the save that is running. later means that it is only scheduled,
// for Start.
func (s *Saves) Rewrite(later bool) (scheduled bool, err error) {
	saving, rewriting, _ := s.Running()
	if rewriting {
		return false, ErrRewriting
	}
	if !saving && !later {
		if err := s.start(true); !errors.Is(err, ErrBusy) {
			return false, err
		}
	}
	s.schedule(true)
	return true, nil
}

func (s *Saves) schedule(rewrite bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rewriteNext = s.rewriteNext || rewrite
	s.saveNext = s.saveNext || !rewrite
}

func (s *Saves) start(rewrite bool) error {
	if err := s.store.SnapshotInBackground(); err != nil {
		return err
	}
	if rewrite {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.rewrite = s.store.Status().Saves
	}
	return nil
}

// Start starts what is scheduled, now or when the current snapshot has ended. The caller holds no
// lock of the engine.
func (s *Saves) Start() {
	if s.startScheduled() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waitingForEnd {
		return
	}
	s.waitingForEnd = true
	go func() {
		for {
			time.Sleep(retryInterval)
			s.mu.Lock()
			s.waitingForEnd = s.rewriteNext || s.saveNext
			more := s.waitingForEnd
			s.mu.Unlock()
			if !more {
				return
			}
			s.startScheduled()
		}
	}()
}

// startScheduled starts what is scheduled, a rewrite first. It returns false if another snapshot is
// running.
func (s *Saves) startScheduled() bool {
	for {
		s.mu.Lock()
		rewrite, save := s.rewriteNext, s.saveNext
		if rewrite {
			s.rewriteNext = false
		} else {
			s.saveNext = false
		}
		s.mu.Unlock()
		if !rewrite && !save {
			return true
		}
		if err := s.start(rewrite); errors.Is(err, ErrBusy) {
			s.schedule(rewrite)
			return false
		} else if err != nil {
			s.failed(err)
		}
	}
}
