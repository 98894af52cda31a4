package command

import (
	"time"

	"rlserver/engine"
)

// postponed is a reply that takes long, and needs no more of the keyspace than its handler has
// kept. It is written after the locks are released, at its place among the other replies.
type postponed struct {
	At    int // index in the replies
	Write func(*Call) error
}

// Postpone has the reply of the call written after the locks are released. What write reads must
// not change meanwhile, see engine.Tx.Share. A command that postpones must not have the flag Fast:
// calls with it share locks with other calls.
func (c *Call) Postpone(write func(*Call) error) {
	c.Postponed = append(c.Postponed, postponed{len(c.Reply.B), write})
}

// longCall is how long a call runs before it asks whether its client has gone. Calls that take less
// also reply to a client that has only closed its half of the connection.
const longCall = time.Second

// ErrGone ends a call whose client has gone.
const ErrGone = engine.Error("ERR the client has closed the connection")

// Unwanted returns ErrGone if the call has run for longCall and its client has gone. Long calls ask
// every few milliseconds.
func (c *Call) Unwanted() error {
	if c.Conn.Running() < longCall || !c.Conn.Gone() {
		return nil
	}
	return ErrGone
}

// LongReply is the number of members or fields from which a reply is written after the locks are
// released.
const LongReply = 4096
