package web

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"
)

const (
	frameInterval = time.Second     // between events, while somebody watches
	pointInterval = 5 * time.Second // between points of the history
	points        = int(time.Hour / pointInterval)

	maxPolicies = 100 // that an event has: those that have decided most of late
	maxDenied   = 20  // keys that an event has
)

// sampler looks at the server at intervals. It keeps the last hour, and makes the events of which
// all streams send the same bytes.
type sampler struct {
	source Source
	// how many streams wait for events; without any, none are made
	watchers atomic.Int64
	wake     chan struct{} // the first watcher has come

	mu     sync.Mutex
	latest *frame // nil: none yet

	past    *past
	last    *State    // of the last event or point
	at      time.Time // of last
	pointed *State    // of the last point
	pointAt time.Time
}

// frame is an event, and a channel that is closed when the next one is there.
type frame struct {
	event []byte
	next  chan struct{}
}

func newSampler(source Source) *sampler {
	return &sampler{
		source: source, wake: make(chan struct{}, 1),
		latest: &frame{next: make(chan struct{})}, past: newPast(),
	}
}

// run samples until the context ends.
func (p *sampler) run(ctx context.Context) {
	ticks := time.NewTicker(frameInterval)
	defer ticks.Stop()
	p.pointed, p.pointAt = p.source.State(), time.Now()
	p.last, p.at = p.pointed, p.pointAt
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.wake:
		case <-ticks.C:
		}
		p.sample(time.Now())
	}
}

// sample makes a point or an event or both, if it is time for them.
func (p *sampler) sample(now time.Time) {
	point, watched := now.Sub(p.pointAt) >= pointInterval-frameInterval/2, p.watchers.Load() > 0
	if !point && !watched {
		return
	}
	state := p.source.State()
	if point {
		p.past.add(between(p.pointed, state, now.Sub(p.pointAt)))
		p.pointed, p.pointAt = state, now
	}
	if watched {
		f := between(p.last, state, now.Sub(p.at))
		f.Denied = viewDenied(p.source.Denied(maxDenied))
		f.Status = statusOf(state, p.source.Ready())
		p.publish(f)
	}
	p.last, p.at = state, now
}

func (p *sampler) publish(f *view) {
	event, err := json.Marshal(f)
	if err != nil {
		return // numbers and text alone cannot fail
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.latest
	p.latest = &frame{event: event, next: make(chan struct{})}
	close(before.next)
}

// watch counts a stream until leave is called, and returns the frame that is current.
func (p *sampler) watch() (now *frame, leave func()) {
	if p.watchers.Add(1) == 1 {
		select {
		case p.wake <- struct{}{}: // the last event may be from long ago
		default:
		}
	}
	return p.current(), func() { p.watchers.Add(-1) }
}

func (p *sampler) current() *frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.latest
}
