package command

import (
	"time"

	"rlserver/engine"
)

// postponed is a reply that takes long, and needs only the part of the keyspace that its handler
// has kept. It is written after the locks are released, at its place among the other replies.
type postponed struct {
	At    int // index in the replies
	Write func(*Call) error
}

// Postpone delays the reply of the call until the locks are released. Data that write reads must
// not change meanwhile, see engine.Tx.Share. A command that postpones must not have the flag Fast:
// calls with that flag share locks with other calls.
func (c *Call) Postpone(write func(*Call) error) {
	c.Postponed = append(c.Postponed, postponed{len(c.Reply.B), write})
}

// LongWork is the number of elements from which a call takes long: visiting that many takes some
// milliseconds.
const LongWork = 50_000

// TakesLong lets the process serve other clients although the call runs for many milliseconds.
// Handlers call it, or Visits, before they visit more than LongWork elements.
func (c *Call) TakesLong() {
	if c.Conn != nil { // a call that has waited has no connection
		c.Conn.TakesLong()
	}
}

// Visits declares that the call visits n elements, which takes long if there are many.
func (c *Call) Visits(n int) {
	if n > LongWork {
		c.TakesLong()
	}
}

// longCall is the time that a call runs before it checks whether its client has gone. Shorter calls
// also reply to a client that has only closed its side of the connection.
const longCall = time.Second

// noticeable is the time that a call runs before it delays other clients noticeably.
const noticeable = 5 * time.Millisecond

// ErrGone ends a call whose client has gone.
const ErrGone = engine.Error("ERR the client has closed the connection")

// Unwanted returns ErrGone if the call has run for longCall and its client has gone. Long calls
// call it every few milliseconds.
func (c *Call) Unwanted() error {
	if c.Conn.Running() > noticeable {
		c.Conn.TakesLong()
	}
	if c.Conn.Running() < longCall || !c.Conn.Gone() {
		return nil
	}
	return ErrGone
}

// LongReply is the number of members or fields from which a reply is written after the locks are
// released.
const LongReply = 4096
