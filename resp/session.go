package resp

import (
	"bytes"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"rlserver/engine"
	"rlserver/resp/clientmem"
	"rlserver/resp/command"
	"rlserver/resp/events"
	"rlserver/resp/executor"
	"rlserver/resp/forward"
	"rlserver/resp/pubsub"
	"rlserver/resp/waitqueue"
	"rlserver/resp/wire"
)

// session is the connection of one client. Only the connection's own goroutine may touch it, except
// profile, waiter, and what the guard declares as atomic.
type session struct {
	executor.Runner // runs the calls

	// The socket.
	server  *Server
	guard   *wire.Guard
	created int64   // elapsed ms
	closing bool    // the connection is closed after the replies of the batch
	calls   int64   // copied to the profile after each batch
	profile profile // what other goroutines may read

	// The login, see login.go.
	authenticated bool
	refused       int // calls since it was not logged in, at most maxRefused

	// The replies of the batch.
	replyMode  replyMode
	replyStart int          // where the reply of the current call begins
	depends    []dependence // what flush waits for, see replies.go
	marks      []mark       // places of replies, in order
	firstMark  int          // how many marks there were before the current call

	at *partition // of the current call

	txs   map[int]partitionTx // of the partitions used so far, by group; nil: only of at
	watch *partition          // of the watched keys
	role  role
	away  away

	// The calls that run under one hold of locks, see pipeline.go, and what runs after it.
	group    []command.Prepared
	ran      int // index of the call of group that runs
	deferred []func()

	takesLong bool          // the call has called TakesLong
	again     bool          // the call runs again after a pause
	pausedAt  time.Duration // elapsed time of the last pause, see session.pause
	lines     int           // bytes of lines for monitors, see HoldLines

	// MULTI and WATCH, see transaction.go.
	transaction transaction
	watching    *engine.Watch

	messages pubsub.Conn // what it publishes and has subscribed to

	waiter atomic.Pointer[waitqueue.Waiter] // while a call waits; nil otherwise
}

// replyMode is the mode set by CLIENT REPLY.
type replyMode uint8

const (
	replyOn       replyMode = iota
	replyOff                // CLIENT REPLY OFF
	replySkipNext           // CLIENT REPLY SKIP has just run: the reply of the next call is dropped
	replySkipThis           // the reply of this call is dropped
)

// maxKeptReply is the capacity up to which a session keeps its reply buffer between batches, in
// bytes. The guard takes larger ones.
const maxKeptReply = 8 << 10

// newSession returns a session without an id.
func (s *Server) newSession(g *wire.Guard) *session {
	ss := &session{
		watching: new(engine.Watch),
		server:   s, guard: g, created: s.elapsed(),
		Runner: executor.Runner{
			Call: command.Call{
				Env: &s.Env, Tx: s.Engine.NewTx(),
				Random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
			},
			Hasher: command.Hasher{Engine: s.Engine},
		},
	}
	ss.Init(&s.Env, ss)
	ss.Conn, ss.Reply.Limiter = ss, ss
	ss.messages.Init(s.Channels, g)
	ss.Tx.Listener = ss
	ss.at = s.home
	ss.away.calls = forward.Client{Pool: s.passing, Gone: ss.left}
	g.Unread = func(bytes int64) { s.countOutputOverrun(ss, bytes) }
	g.Relieve = ss.evictClientsIfNeeded
	g.LoginTime = s.Settings.PreauthTimeout
	g.LimitBulk(s.executor.MaxBulk)
	ss.profile.resp.Store(2)
	ss.profile.active.Store(ss.created)
	ss.logout()
	if g.TLS() { // until the handshake is complete, the client counts as one that has not logged in
		ss.setAuthenticated(false)
		g.Admit = func() string { return s.admit(ss) }
	}
	return ss
}

// sessionOf returns the session of a call. It is the only way from a handler to its connection and
// the server.
func sessionOf(c *command.Call) *session { return c.Conn.(*session) }

// serve serves the client until the connection ends, and returns why: io.EOF if the client or the
// server has closed it. The guard may use buf as long as serve runs.
func (s *session) serve(buf []byte) error {
	for s.goesOn() {
		if err := s.guard.Wait(buf); err != nil {
			return err
		}
		s.away.calls.Begin()
		if s.isForNode() {
			s.runForNode()
		} else {
			s.runBatch()
		}
	}
	s.guard.EndSending()
	// CLIENT LIST must not show a client that has seen the end of its connection
	s.server.unregister(s)
	return io.EOF
}

// goesOn reports whether the client's calls may still run. One that was killed, or evicted for its
// memory, may have sent more of them.
func (s *session) goesOn() bool {
	return !s.closing && !s.profile.killed.Load() && !s.guard.Memory.Closed()
}

// runBatch runs the commands that have arrived and sends their replies.
func (s *session) runBatch() {
	for s.goesOn() {
		words := s.guard.Next()
		if words == nil {
			break
		}
		s.execute(words)
		if s.Tracked != nil {
			s.endCaching()
		}
		s.applyReplyMode()
		if before, events, behind := s.messages.Own(); before != nil || behind != nil {
			s.insertMessages(before, events)
			s.appendEvents(behind)
		}
		if len(s.Reply.B) >= wire.FlushSize || s.messages.Size() >= wire.FlushSize || s.Reply.Truncated {
			s.flush()
		}
	}
	s.flush()
}

// applyReplyMode drops the reply of the call if CLIENT REPLY requires it.
func (s *session) applyReplyMode() {
	switch s.replyMode {
	case replyOn:
		return
	case replySkipNext:
		s.replyMode = replySkipThis
	case replySkipThis:
		s.replyMode = replyOn
	}
	s.dropReply()
	s.Reply.Truncated = false
}

// flush waits until the replies may be sent, see replies.go, and sends them. If sending fails, the
// next read of the guard returns the error and ends the session.
func (s *session) flush() {
	s.Meter.Flush()
	s.Paused()
	s.awaitDurable()
	if s.Reply.Truncated {
		s.closeForOutputLimit()
	}
	s.profile.calls.Store(s.calls)
	s.profile.errors.Store(s.Errors)
	s.profile.batches.Add(1)
	if queued := s.transaction.profileCount(); s.profile.queued.Load() != queued {
		s.profile.queued.Store(queued)
	}
	if s.isForNode() {
		if cap(s.Reply.B)-len(s.Reply.B) > maxKeptReply { // all of it counts as unread
			s.Reply.B = bytes.Clone(s.Reply.B)
		}
		s.guard.AwaitRoomFor(cap(s.Reply.B)) // the link has calls of other clients as well
	}
	s.messages.Order()
	s.guard.Offer(s.Reply.B, cap(s.Reply.B) > maxKeptReply)
	s.messages.Sent() // before this one waits for its client: others wait for the delivery
	s.guard.AwaitRoom()
	s.release()
	s.account()
}

// release drops the buffers of the batch: the session may now be idle for a long time.
func (s *session) release() {
	s.Reply.B = s.Reply.B[:0]
	if cap(s.Reply.B) > maxKeptReply {
		s.Reply.B = nil // the guard owns it
	}
	s.Reply.NextCheck = 0
	s.Runner.Release()
	clear(s.group[:cap(s.group)])
}

// TakesLong implements the connection of command.Call.
func (s *session) TakesLong() {
	if s.takesLong || s.server.longCall == nil {
		return
	}
	end := s.server.longCall()
	s.takesLong = true
	s.DeferUntilUnlocked(func() {
		s.takesLong = false
		end()
	})
}

// Messages implements the connection of command.Call.
func (s *session) Messages() *pubsub.Conn { return &s.messages }

// Hear implements engine.Listener.
func (s *session) Hear(list engine.Changes) {
	l := s.server.listener
	l.Tell(&s.messages, s.Tracked, list.Named)
	if len(list.Rest) > 0 { // no handler has ended: it has released its locks in between
		name := ""
		if s.Command != nil {
			name = s.Command.FullName()
		}
		l.Tell(&s.messages, s.Tracked, events.Name(name, s.Words, list.Rest))
	}
}

// Gone implements the connection of command.Call.
func (s *session) Gone() bool { return s.guard.Gone() }

// Running implements the connection of command.Call.
func (s *session) Running() time.Duration {
	return s.server.Time.Elapsed() - time.Duration(s.profile.active.Load())*time.Millisecond
}

// enqueue makes a call wait whose handler has returned ErrWait. The locks of its keys are held.
func (s *session) enqueue(p command.Prepared) *waitqueue.Waiter {
	return s.at.queues.Enqueue(&s.Call, p, s.guard.Wake, &s.waiter)
}

// pauseBehindScripts sleeps while a call waits. It ends the waiting if the timeout has ended, and a
// script holds the key for long, or CLIENT PAUSE holds back a pop: the timer waits for their end.
func (s *session) pauseBehindScripts(w *waitqueue.Waiter) error {
	paused := s.ChangesPaused()
	switch left := w.UntilLate(); {
	case left == command.Never:
		return s.guard.Pause()
	case left > 0:
		return s.guard.PauseFor(left)
	case paused && w.Pops(), !paused && s.Env.Engine.Holds.Late() > 0:
		w.Unblock(waitqueue.TimedOut)
		return nil
	}
	return s.guard.PauseFor(time.Second)
}

// await sends the replies of earlier calls, and waits until the call has its reply or the client
// has disconnected. No lock is held.
func (s *session) await(w *waitqueue.Waiter) {
	w.Join(s.Tx)
	s.refuseWaitingIfDenied() // the user may have changed before usersChanged could find the waiter
	s.runDeferred()
	s.flush()
	s.beginReply()
	s.guard.Memory.Set(clientmem.Waiting, w.Size())
	s.failIfEnded()
	gone := s.closing // the journal has failed
	for !gone && w.Waits() {
		gone = s.pauseBehindScripts(w) != nil
	}
	w.Dequeue(s.Tx)
	s.waiter.Store(nil)
	s.guard.Memory.Set(clientmem.Waiting, 0)
	if gone {
		s.closing = true // without a reply, as in Redis
		return
	}
	reply, errors, position := w.Answer()
	s.Errors += errors
	s.Reply.B = append(s.Reply.B, reply...)
	if !w.NotRun() {
		s.markReply(w.Effect())
		s.See(position)
	}
}
