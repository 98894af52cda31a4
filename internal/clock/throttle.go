package clock

import (
	"sync/atomic"
	"time"
)

// Throttle limits how often an event that clients can cause has an effect, such as a log line or a
// collection, so that no client can fill the disk through the log. The zero value is ready to use.
type Throttle struct {
	last    atomic.Int64 // elapsed ms, plus 1, at which Allow last returned true; 0: never
	skipped atomic.Int64 // calls since then
}

// Allow reports whether interval has passed since it last returned true, and how many calls were
// skipped in between. now is elapsed milliseconds. Any goroutine may call it.
func (t *Throttle) Allow(now int64, interval time.Duration) (skipped int64, ok bool) {
	now++
	last := t.last.Load()
	if last != 0 && now-last < interval.Milliseconds() || !t.last.CompareAndSwap(last, now) {
		t.skipped.Add(1)
		return 0, false
	}
	return t.skipped.Swap(0), true
}
