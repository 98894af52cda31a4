package resp

import (
	"rlserver/resp/clientmem"
	"rlserver/resp/command"
	"rlserver/resp/waitqueue"
)

// hold lets a call wait whose handler has returned errHeld. Its locks are held.
func (s *session) hold(p command.Prepared) *waitqueue.Waiter {
	w := s.server.room.Enter(&s.Call, p, s.guard.Wake)
	s.waiter.Store(w)
	return w
}

// await sends the replies that stand before the call's, and waits until the call is answered or the client is gone.
func (s *session) await(w *waitqueue.Waiter) {
	s.flush()
	s.begun = 0
	s.guard.Memory.Set(clientmem.Waiting, w.Size())
	gone := s.closing // as the journal could not keep a change
	for !gone && w.Waits() {
		gone = s.guard.Pause() != nil
	}
	w.End(s.Tx)
	s.waiter.Store(nil)
	s.guard.Memory.Set(clientmem.Waiting, 0)
	if gone {
		s.closing = true // as by Redis, without an answer
		return
	}
	s.Errors += w.Own.Errors
	s.Reply.B = append(s.Reply.B, w.Own.Reply.B...)
	s.See(w.Position)
}
