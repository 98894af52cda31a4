package command

import (
	"time"

	"rlserver/engine"
)

// postponed is an answer that takes long to make out, and needs no more of the keyspace than its handler has taken along: it is written
// when no lock is held any more, at the place that it has among the others.
type postponed struct {
	At    int // where in the replies
	Write func(*Call) error
}

// Postpone has the answer of the call written when the locks are let go of. What write looks at must stay as it is, see engine.Tx.Share.
// A command that does so is not fast: those are run together with others.
func (c *Call) Postpone(write func(*Call) error) {
	c.Postponed = append(c.Postponed, postponed{len(c.Reply.B), write})
}

// longCall is how long a call runs before it asks whether the client still waits for its reply. A client that has closed its half of the connection alone
// gets the replies to what it has sent, if they take no longer.
const longCall = time.Second

const ErrGone = engine.Error("ERR the client has closed the connection")

// Unwanted is errGone if the call has run for long and its client is gone. It is to be asked every few milliseconds.
func (c *Call) Unwanted() error {
	if c.Conn.Running() < longCall || !c.Conn.Gone() {
		return nil
	}
	return ErrGone
}

// LongReply is from how many members or fields on a reply is written when the locks are let go.
const LongReply = 4096
