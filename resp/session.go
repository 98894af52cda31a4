package resp

import (
	"math/rand/v2"
	"rlserver/engine"
	"rlserver/resp/command"
	"rlserver/resp/waitqueue"
	"rlserver/resp/wire"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"
)

// session is one client's connection: who it is, which database it has selected, and the answers it waits for.
// Only the connection's own goroutine touches it, but for what says otherwise.
type session struct {
	command.Call // the one that is being run; between calls, the buffers that all of them use

	server  *Server
	guard   *wire.Guard
	created int64 // elapsed ms

	authenticated bool
	failedLogins  int // in a row, up to 16
	silence       silence
	closing       bool            // after the reply the connection is closed
	position      engine.Position // of the latest change that the batch has seen: its replies wait for that much of the journal

	together []command.Prepared // the calls that are run under one hold
	hasher   command.Hasher     // with the keys of all of them

	transaction transaction
	watching    engine.Watch
	afterwards  []func() // to be done when no lock is held any more

	begun  int                              // where the answer of the call begins that is being run
	waiter atomic.Pointer[waitqueue.Waiter] // while it waits; others may look

	calls   int64   // counted here, shown in the profile after each batch
	profile profile // what others may look at
}

// silence is what CLIENT REPLY asks for.
type silence uint8

const (
	speak    silence = iota
	mute             // CLIENT REPLY OFF
	skipNext         // CLIENT REPLY SKIP, itself without an answer: the next call's answer is left out
	skipThis         // the call whose answer is left out
)

// serve answers the commands that have arrived.
func (s *session) serve(conn redcon.Conn) {
	for !s.closing {
		words := s.guard.Next()
		if words == nil {
			break
		}
		s.execute(words)
		s.hush()
		if len(s.Reply.B) >= wire.FlushSize || s.Reply.Truncated {
			s.flush()
		}
	}
	s.flush()
	if s.closing {
		s.guard.Settle()
		s.server.forget(s) // before the client can see the end and ask who is there
		conn.Close()
	}
}

// hush takes the call's answer back where CLIENT REPLY wants none.
func (s *session) hush() {
	switch s.silence {
	case speak:
		return
	case skipNext:
		s.silence = skipThis
	case skipThis:
		s.silence = speak
	}
	s.Reply.B, s.Reply.Truncated = s.Reply.B[:s.begun], false
}

const (
	keptReply = 8 << 10 // the largest buffer that a session holds on to between batches
)

// flush sends the replies once the journal has what they acknowledge. If they cannot be sent, the next read says so and ends the session.
func (s *session) flush() {
	if s.position != 0 {
		if err := s.server.journal.Wait(s.position); err != nil {
			s.Reply.B = s.Reply.B[:0]
			s.closing = true // what was promised cannot be kept: no reply is better than a wrong one
			if s.server.seldom(&s.server.unkept, time.Second) {
				s.server.Log.Error("changes could not be kept: the connections that made them are closed without a reply", "client", s.Client, "error", err)
			}
		}
		s.position = 0
	}
	if s.Reply.Truncated {
		s.cutOff()
	}
	s.profile.calls.Store(s.calls)
	s.profile.errors.Store(s.Errors)
	s.profile.batches.Add(1)
	if queued := s.transaction.shown(); s.profile.queued.Load() != queued {
		s.profile.queued.Store(queued)
	}
	s.guard.Send(s.Reply.B, cap(s.Reply.B) > keptReply)
	s.release()
	s.account()
}

// release lets go of what the batch has needed: a session may be idle for long after it.
func (s *session) release() {
	s.Reply.B = s.Reply.B[:0]
	if cap(s.Reply.B) > keptReply {
		s.Reply.B = nil // it belongs to the guard
	}
	s.Reply.NextCheck = 0
	s.Words, s.Args, s.Keys, s.Ready = nil, command.Args{}, nil, nil
	s.hasher.Release()
	clear(s.together[:cap(s.together)])
}

// sessionOf is the connection of a call, as the handlers of commands about connections and the
// server know it.
func sessionOf(c *command.Call) *session { return c.Conn.(*session) }

func (s *session) Gone() bool { return s.guard.Gone() }

func (s *session) Running() time.Duration {
	return s.server.Time.Elapsed() - time.Duration(s.profile.active.Load())*time.Millisecond
}

func (s *Server) newSession(g *wire.Guard) *session {
	ss := &session{
		server: s, guard: g, created: s.elapsed(),
		Call:   command.Call{Env: &s.Env, Tx: s.Engine.NewTx(), Random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))},
		hasher: command.Hasher{Engine: s.Engine},
	}
	ss.Conn, ss.Reply.Limiter = ss, ss
	g.Unread = func(bytes int64) { s.unread(ss, bytes) }
	g.Relieve = ss.relieve
	g.LoginTime = s.Settings.PreauthTimeout
	ss.profile.resp.Store(2)
	ss.profile.active.Store(ss.created)
	ss.authenticate(s.Settings.Password() == "")
	return ss
}
