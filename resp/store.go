package resp

import (
	"errors"

	"rlserver/resp/config"
)

// Store keeps the data on disk. Without a Store the data is in memory alone, and SAVE and similar
// commands return an error that says how to enable it. Any goroutine may call the methods.
type Store interface {
	// Refusal returns why changes are refused now, as the text after MISCONF; "": they are
	// accepted. It is called before each such command, so it must be fast.
	Refusal() string
	// Save takes a snapshot and returns when it is on the disk. It returns ErrSaving if one is
	// being taken already.
	Save() error
	// SaveInBackground starts a snapshot. It returns ErrSaving if one is being taken already.
	SaveInBackground() error
	// Configure applies what CONFIG SET has changed. Calls do not overlap.
	Configure(config.StoreSettings)
	// Status may be called under locks of the engine: it must not wait for a goroutine that takes
	// them.
	Status() config.StoreStatus
}

// ErrSaving is returned by a Store while a snapshot is being taken.
var ErrSaving = errors.New("a snapshot is being taken already")

// refusal returns Store.Refusal, or "" without a store.
func (s *Server) refusal() string {
	if s.store == nil {
		return ""
	}
	return s.store.Refusal()
}

// SetLoading sets whether the data is being loaded: until then clients get LOADING. A new server is
// not loading.
func (s *Server) SetLoading(yes bool) {
	if yes {
		s.loading.Store(s.Clock())
	} else {
		s.loading.Store(0)
	}
}

// configure passes the current settings to the store.
func (s *Server) configure() {
	if s.store == nil {
		return
	}
	s.configuring.Lock() // so that the newest settings are applied last
	defer s.configuring.Unlock()
	s.store.Configure(s.Settings.Store())
}
