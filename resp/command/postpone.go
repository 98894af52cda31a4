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

// LongWork is the number of elements from which a call takes long: to go through that many takes
// some milliseconds.
const LongWork = 50_000

// TakesLong has the process serve other clients at once although the call runs for many
// milliseconds: handlers call it before they go through more than LongWork elements.
func (c *Call) TakesLong() {
	if c.Conn != nil { // a call that has waited has none
		c.Conn.TakesLong()
	}
}

// longCall is how long a call runs before it asks whether its client has gone. Calls that take less
// also reply to a client that has only closed its half of the connection.
const longCall = time.Second

// noticeable is how long a call runs before other clients notice.
const noticeable = 5 * time.Millisecond

// ErrGone ends a call whose client has gone.
const ErrGone = engine.Error("ERR the client has closed the connection")

// Unwanted returns ErrGone if the call has run for longCall and its client has gone. Long calls ask
// every few milliseconds.
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
