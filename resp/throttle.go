package resp

import (
	"sync/atomic"
	"time"

	"rlserver/resp/command"
)

// throttle limits how often something happens that clients can cause: a log line, a collection.
// So no client can fill the disk through the log. The zero value has not let anything through yet.
type throttle struct {
	last    atomic.Int64 // elapsed ms, plus 1, when it last let something through; 0: never
	skipped atomic.Int64 // calls since then
}

// allow reports whether interval has passed since it last returned true, and how many calls were
// skipped in between. now is elapsed milliseconds. Any goroutine may call it.
func (t *throttle) allow(now int64, interval time.Duration) (skipped int64, ok bool) {
	now++
	last := t.last.Load()
	if last != 0 && now-last < interval.Milliseconds() || !t.last.CompareAndSwap(last, now) {
		t.skipped.Add(1)
		return 0, false
	}
	return t.skipped.Swap(0), true
}

// elapsed is the monotonic clock in ms, which measures durations: the server's time may jump.
func (s *Server) elapsed() int64 { return s.Time.Elapsed().Milliseconds() }

// allows is throttle.allow with the time of now.
func (s *Server) allows(t *throttle, interval time.Duration) (skipped int64, ok bool) {
	return t.allow(s.elapsed(), interval)
}

func init() {
	command.Register(
		&command.Command{Name: "time", Arity: 1, Flags: command.Loading | command.Stale | command.Fast,
			Group: "server", Since: "2.6.0", Complexity: "O(1)", Tips: "nondeterministic_output",
			Summary: "Return the current server time", Run: serverTime},
	)
}

// serverTime handles TIME. It answers by the clock of all limits, which counts milliseconds.
func serverTime(c *command.Call) error {
	now := c.Env.Clock()
	c.Reply.Array(2)
	c.Reply.BulkInteger(now / 1000)
	c.Reply.BulkInteger(now % 1000 * 1000)
	return nil
}
