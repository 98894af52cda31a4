package stats

import "time"

// run is a number of calls of one command with durations in the same bucket.
type run struct {
	index  int // of the command
	bucket int
	calls  int64 // 0: there is no run
	took   time.Duration
}

// Meter adds up the calls of one connection. Calls that run together, while locks are held once,
// are timed together, and each counts as its share. Only the goroutine of the connection may use a
// Meter.
type Meter struct {
	Counters *Counters
	Stripe   int // any number, such as that of the connection

	last run // not added to Counters yet
}

// Add counts calls of a command. took is the duration of each.
func (m *Meter) Add(index int, calls int64, took time.Duration) {
	bucket := bucketOf(took)
	if m.last.index != index || m.last.bucket != bucket {
		m.Flush()
		m.last.index, m.last.bucket = index, bucket
	}
	m.last.calls += calls
	m.last.took += time.Duration(calls) * took
}

// Flush adds the sums to Counters. A connection calls it at the end of each batch.
func (m *Meter) Flush() {
	if m.last.calls > 0 {
		m.Counters.add(m.Stripe, m.last)
		m.last.calls, m.last.took = 0, 0
	}
}
