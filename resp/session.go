package resp

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/tidwall/redcon"

	"rlserver/engine"
)

// session is one client's connection: who it is, which database it has selected, and the answers it waits for.
// Only the connection's own goroutine touches it, but for what says otherwise.
type session struct {
	call // the one that is being run; between calls, the buffers that all of them use

	server  *Server
	guard   *guard
	created int64 // elapsed ms

	authenticated bool
	failedLogins  int // in a row, up to 16
	silence       silence
	closing       bool            // after the reply the connection is closed
	position      engine.Position // of the latest change that the batch has seen: its replies wait for that much of the journal

	together []prepared // the calls that are run under one hold
	hasher   hasher     // with the keys of all of them

	transaction transaction
	watching    engine.Watch
	afterwards  []func() // to be done when no lock is held any more

	begun  int                    // where the answer of the call begins that is being run
	waiter atomic.Pointer[waiter] // while it waits; others may look

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
		words := s.guard.next()
		if words == nil {
			break
		}
		s.execute(words)
		s.hush()
		if len(s.reply.b) >= fullReply || s.reply.over {
			s.flush()
		}
	}
	s.flush()
	if s.closing {
		s.guard.settle()
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
	s.reply.b, s.reply.over = s.reply.b[:s.begun], false
}

const (
	keptReply = 8 << 10 // the largest buffer that a session holds on to between batches
)

// flush sends the replies once the journal has what they acknowledge. If they cannot be sent, the next read says so and ends the session.
func (s *session) flush() {
	if s.position != 0 {
		if err := s.server.journal.Wait(s.position); err != nil {
			s.reply.b = s.reply.b[:0]
			s.closing = true // what was promised cannot be kept: no reply is better than a wrong one
			if s.server.seldom(&s.server.unkept, time.Second) {
				s.server.log.Error("changes could not be kept: the connections that made them are closed without a reply", "client", s.client, "error", err)
			}
		}
		s.position = 0
	}
	if s.reply.over {
		s.cutOff()
	}
	s.profile.calls.Store(s.calls)
	s.profile.errors.Store(s.errors)
	s.profile.batches.Add(1)
	if queued := s.transaction.shown(); s.profile.queued.Load() != queued {
		s.profile.queued.Store(queued)
	}
	s.guard.send(s.reply.b, cap(s.reply.b) > keptReply)
	s.release()
	s.account()
}

// release lets go of what the batch has needed: a session may be idle for long after it.
func (s *session) release() {
	s.reply.b = s.reply.b[:0]
	if cap(s.reply.b) > keptReply {
		s.reply.b = nil // it belongs to the guard
	}
	s.reply.check = 0
	s.words, s.args, s.keys, s.ready = nil, args{}, nil, nil
	s.hasher.release()
	clear(s.together[:cap(s.together)])
}

// recovered answers a panic of a handler: the client gets an error, the log the stack, and the process goes on.
func (s *session) recovered() {
	fault := recover()
	if fault == nil {
		return
	}
	s.postponed, s.ready = nil, nil
	s.see(s.tx.End())
	s.fault(fault, s.begun)
}

// sessionOf is the connection of a call, as the handlers of commands about connections and the
// server know it.
func sessionOf(c *call) *session { return c.conn.(*session) }

// writePostponed puts what was postponed into the replies.
func (s *session) writePostponed() {
	list := s.postponed
	s.postponed = nil
	first := list[0].at
	rest := slices.Clone(s.reply.b[first:])
	s.reply.b = s.reply.b[:first]
	for i, p := range list {
		end := first + len(rest)
		if i+1 < len(list) {
			end = list[i+1].at
		}
		mark := len(s.reply.b)
		if err := p.write(&s.call); err != nil {
			s.reply.b = s.reply.b[:mark]
			s.refuse(err)
		}
		s.reply.b = append(s.reply.b, rest[p.at-first:end-first]...)
	}
}

func (s *session) gone() bool { return s.guard.gone() }

func (s *session) running() time.Duration {
	return s.server.time.Elapsed() - time.Duration(s.profile.active.Load())*time.Millisecond
}
