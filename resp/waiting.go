package resp

// hold lets a call wait whose handler has returned errHeld. Its locks are held.
func (s *session) hold(p prepared) *waiter {
	w := s.server.room.enter(&s.call, p, s.guard.wake)
	s.waiter.Store(w)
	return w
}

// await sends the replies that stand before the call's, and waits until the call is answered or the client is gone.
func (s *session) await(w *waiter) {
	s.flush()
	s.begun = 0
	s.guard.held.note(heldWaiting, w.size())
	gone := s.closing // as the journal could not keep a change
	for !gone && w.waits() {
		gone = s.guard.pause() != nil
	}
	w.end(s.tx)
	s.waiter.Store(nil)
	s.guard.held.note(heldWaiting, 0)
	if gone {
		s.closing = true // as by Redis, without an answer
		return
	}
	s.errors += w.own.errors
	s.reply.b = append(s.reply.b, w.own.reply.b...)
	s.see(w.position)
}
