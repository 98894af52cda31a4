package resp

import (
	"errors"
	"rlserver/resp/config"
)

// Store keeps the state on disk. A server without one is in memory alone: it answers SAVE and the like with an error that says how to have one.
// Any goroutine may call the methods.
type Store interface {
	// Refusal is why commands that would change something are refused now: what follows MISCONF, "" while they are accepted.
	// It is asked before each such command, so it must be fast.
	Refusal() string
	// Save takes a snapshot and returns when it is on the disk. ErrSaving if one is being taken already.
	Save() error
	// SaveInBackground begins a snapshot. ErrSaving if one is being taken already.
	SaveInBackground() error
	// Configure puts into force what CONFIG SET has changed. It is not called twice at once.
	Configure(config.StoreSettings)
	// Status may be asked by who holds locks of the engine: it must not wait for anybody who takes those.
	Status() config.StoreStatus
}

// ErrSaving is what a Store answers while a snapshot is being taken.
var ErrSaving = errors.New("a snapshot is being taken already")

// refusal is the store's, if there is one.
func (s *Server) refusal() string {
	if s.store == nil {
		return ""
	}
	return s.store.Refusal()
}

// SetLoading tells the server that the data is being loaded, so that nobody may see it yet, or that it is there. At first it is there.
func (s *Server) SetLoading(yes bool) {
	if yes {
		s.loading.Store(s.Clock())
	} else {
		s.loading.Store(0)
	}
}

// configure tells the store what is configured now.
func (s *Server) configure() {
	if s.store == nil {
		return
	}
	s.configuring.Lock() // lest an older configuration comes last
	defer s.configuring.Unlock()
	s.store.Configure(s.Settings.Store())
}
