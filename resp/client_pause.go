package resp

import (
	"math"
	"time"

	"rlserver/engine"
	"rlserver/resp/command"
)

// isPaused reports whether CLIENT PAUSE holds back a call.
func (s *session) isPaused(call *command.Prepared) bool {
	p := s.server.currentPause()
	if p == nil || s.profile.monitors.Load() {
		return false // as in Redis
	}
	has := call.Flags(s.Env)
	if s.transaction.open && call.Command == execCommand {
		has |= s.transaction.has
	}
	return p.all || has&command.Changing != 0
}

// AwaitChanges implements the connection of command.Call.
func (s *session) AwaitChanges() bool {
	for i := range s.group { // what arrives meanwhile overwrites the words
		s.group[i].Words = command.CloneWords(s.group[i].Words)
	}
	s.server.held.Add(1)
	defer s.server.held.Add(-1)
	s.profile.paused.Store(true)
	defer s.profile.paused.Store(false)
	for !s.closing {
		left := s.server.changesPaused()
		if left == 0 {
			return true
		}
		s.closing = s.guard.PauseFor(left) != nil
	}
	return false
}

// pause is what CLIENT PAUSE has set.
type pause struct {
	until time.Duration // elapsed
	all   bool          // pauses calls that change nothing as well
}

// currentPause returns the current pause, or nil. It removes one that has ended.
func (s *Server) currentPause() *pause {
	p := s.paused.Load()
	if p == nil || s.Time.Elapsed() < p.until {
		return p
	}
	s.paused.CompareAndSwap(p, nil)
	return s.paused.Load()
}

// changesPaused returns for how long no call may change anything; 0: calls may.
func (s *Server) changesPaused() time.Duration {
	p := s.currentPause()
	if p == nil {
		return 0
	}
	return p.until - s.Time.Elapsed()
}

// ChangesPaused implements the connection of command.Call.
func (s *session) ChangesPaused() bool { return s.server.currentPause() != nil }

// runAfterPause runs a call when it is no longer held back. No lock is held.
func (s *session) runAfterPause(p command.Prepared) {
	p.Words = command.CloneWords(p.Words)
	s.flush() // messages need not wait
	s.beginReply()
	if s.awaitPause(&p) {
		s.run(p.Words)
	}
}

// awaitPause waits until a call is no longer held back. It returns false if the client disconnects.
func (s *session) awaitPause(p *command.Prepared) bool {
	for s.isPaused(p) && s.AwaitChanges() {
	}
	return !s.closing
}

// pausedUnderLocks runs a call that has its locks later, if it is held back: a pause may have begun
// since the call was checked without them. It returns false if there is no pause.
func (s *session) pausedUnderLocks(call *command.Prepared) bool {
	s.group = s.group[:1] // the calls behind it are checked by themselves
	if !s.isPaused(call) {
		return false
	}
	s.retryAfterPause(*call)
	return true
}

// retryAfterPause releases the locks of a call that has changed nothing, and runs it later.
func (s *session) retryAfterPause(call command.Prepared) {
	s.See(s.Tx.End())
	s.runDeferred() // the client may disconnect meanwhile
	s.calls--
	s.runAfterPause(call)
}

const (
	errPauseMode     = engine.Error("ERR CLIENT PAUSE mode must be WRITE or ALL")
	errPauseTimeout  = engine.Error("ERR timeout is not an integer or out of range")
	errPauseNegative = engine.Error("ERR timeout is negative")
	errPauseRange    = engine.Error("ERR timeout is out of range")
)

// clientPause handles CLIENT PAUSE timeout [WRITE | ALL]. It never shortens the current pause.
func clientPause(c *command.Call) error {
	s := sessionOf(c).server
	timeout := command.Args{List: [][]byte{c.Args.Next()}} // Redis checks it after the mode
	if c.Args.Left() > 1 {
		return c.WrongSubcommandArity()
	}
	all := !c.Args.Word("WRITE")
	if c.Args.More() && !c.Args.Word("ALL") {
		return errPauseMode
	}
	ms := timeout.IntegerOr(errPauseTimeout)
	now := s.Time.Elapsed()
	switch {
	case timeout.Err != nil:
		return timeout.Err
	case ms < 0:
		return errPauseNegative
	case ms > math.MaxInt64-s.Clock():
		return errPauseRange
	}
	if s.Scripts.Busy() > 0 { // changes would go on after OK
		return command.ErrBusy
	}
	next := &pause{until: command.After(now, ms), all: all}
	if p := s.currentPause(); p != nil {
		next.until, next.all = max(next.until, p.until), next.all || p.all
	}
	s.paused.Store(next)
	// Calls that have their locks end first, on all partitions: after OK nothing changes.
	c.Conn.DeferUntilUnlocked(s.Engine.Memory().AwaitCalls)
	return c.ReplyOK(nil)
}

func clientUnpause(c *command.Call) error {
	s := sessionOf(c).server
	s.paused.Store(nil)
	c.Conn.DeferUntilUnlocked(s.PoliciesChanged)
	s.each(func(ss *session) {
		if ss.profile.paused.Load() {
			ss.guard.Wake()
		}
	})
	return c.ReplyOK(nil)
}
