package resp

import "sync/atomic"

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
