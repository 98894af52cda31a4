package resp

import (
	"rlserver/resp/command"
	"sync/atomic"
	"time"
)

// profile is the part of a session that other goroutines may read, for CLIENT LIST and INFO. Only
// the connection's own goroutine writes to it, except killed.
type profile struct {
	database atomic.Int32
	resp     atomic.Int32
	active   atomic.Int64 // elapsed ms at the last call
	calls    atomic.Int64 // as of the last batch
	errors   atomic.Int64 // error replies, as of the last batch
	batches  atomic.Int64 // that the calls came in
	largest  atomic.Int64 // bytes of the largest reply that was counted, see MayReply
	queued   atomic.Int32 // commands in a transaction plus 1, as of the last batch; 0 outside MULTI
	command  atomic.Pointer[command.Command]
	name     atomic.Pointer[string]
	library  atomic.Pointer[string]
	version  atomic.Pointer[string]
	noEvict  atomic.Bool
	tracking atomic.Bool
	killed   atomic.Bool // it is being closed: CLIENT LIST and KILL leave it out
}

// updateProfile records the current command and the time, also of calls that are refused. c is nil
// if the command is unknown. It stores only what has changed, as an atomic store costs more than a
// load.
func (s *session) updateProfile(c *command.Command, elapsed time.Duration) {
	if now := elapsed.Milliseconds(); s.profile.active.Load() != now {
		s.profile.active.Store(now)
	}
	if s.profile.command.Load() != c {
		s.profile.command.Store(c)
	}
}

// selectDatabase changes the database of the following calls.
func (s *session) selectDatabase(db int) {
	s.DB = db
	s.profile.database.Store(int32(db))
}
