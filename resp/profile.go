package resp

import (
	"rlserver/resp/command"
	"sync/atomic"
	"time"
)

// profile is the part of a session that CLIENT LIST shows to others. Only its own session writes to it.
type profile struct {
	database atomic.Int32
	resp     atomic.Int32
	active   atomic.Int64 // elapsed ms at the last call
	calls    atomic.Int64 // commands executed, as of the last reply
	errors   atomic.Int64 // error replies, likewise
	batches  atomic.Int64 // in how many batches the commands came
	largest  atomic.Int64 // bytes of the largest reply, if it is one that counts
	queued   atomic.Int32 // commands in a transaction, and one more; 0 outside of one; likewise
	command  atomic.Pointer[command.Command]
	name     atomic.Pointer[string]
	library  atomic.Pointer[string]
	version  atomic.Pointer[string]
	noEvict  atomic.Bool
	tracking atomic.Bool
	killed   atomic.Bool // its end has begun: others see it no more
}

// show lets others see what the session does, be it refused; c is nil for no command. Loading is free, storing is not: in a batch little changes.
func (s *session) show(c *command.Command, elapsed time.Duration) {
	if now := elapsed.Milliseconds(); s.profile.active.Load() != now {
		s.profile.active.Store(now)
	}
	if s.profile.command.Load() != c {
		s.profile.command.Store(c)
	}
}

// use selects a database.
func (s *session) use(db int) {
	s.Db = db
	s.profile.database.Store(int32(db))
}
