package resp

import (
	"sync/atomic"
	"time"
)

// logTurn lets one line a second through, and counts those in between.
type logTurn struct{ last, missed atomic.Int64 }

// due tells whether it is time for a line at now (elapsed ms), and how many were left out since the last.
func (l *logTurn) due(now int64) (missed int64, ok bool) {
	now++ // 0 is never
	if last := l.last.Load(); last != 0 && now-last < 1000 || !l.last.CompareAndSwap(last, now) {
		l.missed.Add(1)
		return 0, false
	}
	return l.missed.Swap(0), true
}

// seldom tells whether it is so long since it last did, which is kept in last as elapsed ms; 0: never. A log that is
// written to only then cannot be made to fill the disk.
func (s *Server) seldom(last *atomic.Int64, every time.Duration) bool {
	now, then := 1+s.elapsed(), last.Load()
	return (then == 0 || now-then >= every.Milliseconds()) && last.CompareAndSwap(then, now)
}

// elapsed is the monotonic clock in ms, by which durations are measured: the server's time may jump forward.
func (s *Server) elapsed() int64 { return s.Time.Elapsed().Milliseconds() }
