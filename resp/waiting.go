package resp

import (
	"rlserver/resp/clientmem"
	"rlserver/resp/command"
	"rlserver/resp/waitqueue"
)

// enqueue adds a call whose handler has returned ErrWait to the queue of each of its keys. The
// locks of the keys are held.
func (s *session) enqueue(p command.Prepared) *waitqueue.Waiter {
	w := s.server.queues.Enqueue(&s.Call, p, s.guard.Wake)
	s.waiter.Store(w)
	return w
}

// await sends the replies before the call's, and waits until the call has its reply or the client
// has disconnected. No lock is held.
func (s *session) await(w *waitqueue.Waiter) {
	s.flush()
	s.replyStart = 0
	s.guard.Memory.Set(clientmem.Waiting, w.Size())
	gone := s.closing // the journal has failed
	for !gone && w.Waits() {
		gone = s.guard.Pause() != nil
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
	s.See(position)
}
