package group

import (
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"rlserver/cluster/broken"
	"rlserver/internal/clock"
)

// timeline is the time of a group. Followers estimate it: the latest time in the log plus the
// monotonic time since that entry has arrived here. It was stamped before, so that is a lower bound
// of what has passed. A leader's time begins with its estimate, and is slewed from there towards
// the clocks of the nodes. So a change of leaders turns it neither forward nor back, whatever the
// system clocks say, and makes no window shorter.
type timeline struct {
	source   clock.Source
	clocks   func(own, now int64) int64 // see Options.Clocks
	point    atomic.Pointer[point]
	arrivals arrivals
}

// point is the latest time in the log, and when its entry has arrived. It is replaced as a whole:
// others are told an estimate only if it is known, and must not get that of an old log instead.
type point struct {
	at      int64 // Unix ms
	arrived time.Duration
	// an entry of a leadership that began or went on after the start of this process was applied
	live bool
}

func newTimeline(source clock.Source) *timeline {
	t := &timeline{source: source, clocks: func(own, _ int64) int64 { return own }}
	t.point.Store(&point{})
	return t
}

// saw is called with the index and the time of each entry, Unix ms, and with index 0 for the latest
// time in a snapshot, by one goroutine. live reports that the entry is not just one of before the
// start of this process. An entry without a time, as a barrier is, says nothing: in a new cluster
// all others would take the time to be 0, and tell so to the first leader.
func (t *timeline) saw(index uint64, ms int64, live bool) {
	if ms == 0 {
		return
	}
	p := *t.point.Load()
	if ms >= p.at {
		p.at, p.arrived = ms, t.arrivals.of(index, t.source.Elapsed())
	}
	p.live = p.live || live
	t.point.Store(&p)
}

// arrive notes that entries are about to be stored here. They may be applied much later, as when
// their leader ends before others know that they are committed.
func (t *timeline) arrive(first, last uint64) { t.arrivals.note(first, last, t.source.Elapsed()) }

// arrivals are when the latest entries have arrived.
type arrivals struct {
	mu   sync.Mutex
	next int // the oldest
	last [64]arrival
}

type arrival struct {
	first, last uint64 // indexes
	at          time.Duration
}

func (a *arrivals) note(first, last uint64, at time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last[a.next] = arrival{first, last, at}
	a.next = (a.next + 1) % len(a.last)
}

// of returns when an entry has arrived, otherwise if that is not known. An entry that was replaced
// has arrived when the one in its place has. Index 0 is that of a snapshot, and of the places in
// the ring that are not used yet.
func (a *arrivals) of(index uint64, otherwise time.Duration) time.Duration {
	if index == 0 {
		return otherwise
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.last {
		at := &a.last[(a.next+2*len(a.last)-1-i)%len(a.last)] // the latest first
		if at.first <= index && index <= at.last {
			return at.at
		}
	}
	return otherwise
}

const (
	// longestSlew keeps the difference that a leader's clock sees below a minute, which package
	// clock slews without a jump.
	longestSlew = int64(30 * time.Second / time.Microsecond)

	// Slack is by how much the time of a group may be behind the clocks of the nodes. It falls
	// behind by milliseconds at a change of leaders. To make up for that would shorten windows, so
	// nothing does, also when the whole cluster starts.
	Slack = 500 * time.Millisecond
)

// estimate returns the time as far as this replica knows it, Unix ms. ok is false if no entry of a
// present leadership was applied since the start: then it only knows when its log ends.
func (t *timeline) estimate() (ms int64, ok bool) {
	p := t.point.Load()
	return p.at + (t.source.Elapsed() - p.arrived).Milliseconds(), p.live
}

// latest returns the latest time in the log, Unix ms; 0: there is none.
func (t *timeline) latest() int64 { return t.point.Load().at }

// begin returns the clock of a new leader. If it does not know the time, ask is called with the
// latest time in the log, and returns a lower bound that the nodes have found. If that is not ok,
// the own system clock says how much time has passed. To begin tells nothing to others, nor to a
// later leadership of this replica: the first entry does.
func (t *timeline) begin(ask func(log int64) (ms int64, ok bool)) *clock.Clock {
	least := int64(0)
	if p := t.point.Load(); !p.live {
		ms, ok := ask(p.at)
		if !ok {
			wall, _ := t.source.Read()
			ms = Since(p.at, wall/1000)
		}
		least = max(ms, p.at+1) * 1000
	}
	wall, elapsed := t.source.Read()
	p := t.point.Load()
	at := max(p.at*1000+(elapsed-p.arrived).Microseconds(), least)
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
			return now + t.difference(wall, now), elapsed
		},
		// the node's own clock logs differences, once
	}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	led = c
	return c
}

// Since returns the least time that it may be if a log ends at a time and the clocks of the nodes
// show another one, all in Unix ms. log is 0 if there is none.
func Since(log, clocks int64) int64 {
	if log == 0 {
		return clocks
	}
	return max(log+1, clocks-Slack.Milliseconds())
}

// difference returns by how much a leader's time is to be slewed, µs. wall is the own system clock.
func (t *timeline) difference(wall, now int64) int64 {
	ahead := t.clocks(wall, now) - now
	if ahead > 0 {
		ahead = max(0, ahead-Slack.Microseconds())
	}
	return max(-longestSlew, min(ahead, longestSlew))
}
