package group

import (
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"rlserver/clock"
	"rlserver/cluster/broken"
)

// timeline is the time of a group. Followers estimate it: the latest time in the log plus the
// monotonic time since that was applied here. A leader's time begins with its estimate, strictly
// after the latest in the log, and is slewed towards the system clock from there. So a change of
// leaders turns it neither forward nor back, whatever the system clocks of the nodes say.
type timeline struct {
	source clock.Source
	point  atomic.Pointer[point]
	// an entry of a leadership that began or went on after the start of this process was applied
	live atomic.Bool
}

// point is the latest time in the log, and when it was applied.
type point struct {
	at      int64 // Unix ms
	applied time.Duration
}

func newTimeline(source clock.Source) *timeline {
	t := &timeline{source: source}
	t.point.Store(&point{})
	return t
}

// saw is called with the time of each entry, Unix ms. live reports that the entry is not just one
// of before the start of this process. An entry without a time, as a claim is, says nothing: in a
// new cluster all others would take the time to be 0, and tell so to the first leader.
func (t *timeline) saw(ms int64, live bool) {
	if ms == 0 {
		return
	}
	if live {
		t.live.Store(true)
	}
	if ms >= t.point.Load().at {
		t.point.Store(&point{ms, t.source.Elapsed()})
	}
}

// longestSlew keeps the difference that a leader's clock sees below a minute, which package clock
// slews without a jump.
const longestSlew = int64(30 * time.Second / time.Microsecond)

// estimate returns the time as far as this replica knows it, Unix ms. ok is false if no entry of a
// present leadership was applied since the start: then it only knows when its log ends.
func (t *timeline) estimate() (ms int64, ok bool) {
	p := t.point.Load()
	return p.at + (t.source.Elapsed() - p.applied).Milliseconds(), t.live.Load()
}

// begin returns the clock of a new leader. If it does not know the time, ask returns what the other
// nodes know. If they know nothing either, the whole cluster has stopped: then the system clock
// says how long that took. To begin tells nothing to others, nor to a later leadership of this
// replica: the first entry does.
func (t *timeline) begin(ask func() (ms int64, ok bool)) *clock.Clock {
	if !t.live.Load() {
		if ms, ok := ask(); ok {
			t.saw(ms, true)
		}
	}
	wall, elapsed := t.source.Read()
	p := t.point.Load()
	at := max(p.at*1000+(elapsed-p.applied).Microseconds(), (p.at+1)*1000)
	if !t.live.Load() {
		at = max(at, wall)
	}
	if broken.WallClock {
		at = wall
	}
	var led *clock.Clock // nil while it is made, at the time at
	c := clock.New(clock.Source{
		Elapsed: t.source.Elapsed,
		Read: func() (int64, time.Duration) {
			if led == nil {
				return at, elapsed
			}
			wall, elapsed := t.source.Read()
			now := led.Now() * 1000
			return now + max(-longestSlew, min(wall-now, longestSlew)), elapsed
		},
		// the node's own clock logs differences, once
	}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	led = c
	return c
}
