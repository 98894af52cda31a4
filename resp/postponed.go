package resp

import (
	"slices"
	"time"

	"rlserver/engine"
)

// postponed is an answer that takes long to make out, and needs no more of the keyspace than its handler has taken along: it is written
// when no lock is held any more, at the place that it has among the others.
type postponed struct {
	at    int // where in the replies
	write func(*call) error
}

// postpone has the answer of the call written when the locks are let go of. What write looks at must stay as it is, see engine.Tx.Share.
// A command that does so is not fast: those are run together with others.
func (c *call) postpone(write func(*call) error) {
	c.postponed = append(c.postponed, postponed{len(c.reply.b), write})
}

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

// longCall is how long a call runs before it asks whether the client still waits for its reply. A client that has closed its half of the connection alone
// gets the replies to what it has sent, if they take no longer.
const longCall = time.Second

const errGone = engine.Error("ERR the client has closed the connection")

// unwanted is errGone if the call has run for long and its client is gone. It is to be asked every few milliseconds.
func (c *call) unwanted() error {
	if c.conn.running() < longCall || !c.conn.gone() {
		return nil
	}
	return errGone
}

func (s *session) gone() bool { return s.guard.gone() }

func (s *session) running() time.Duration {
	return s.server.time.Elapsed() - time.Duration(s.profile.active.Load())*time.Millisecond
}
