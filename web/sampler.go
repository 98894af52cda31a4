package web

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"
)

const (
	frameInterval = time.Second     // between events, while there are streams
	pointInterval = 5 * time.Second // between points of the history
	points        = int(time.Hour / pointInterval)

	maxPolicies = 100 // in an event: those with the most decisions per second
	maxDenied   = 20  // keys in an event
)

// sampler takes the state of the server at intervals. It keeps the history of the last hour and
// encodes the events of all streams.
type sampler struct {
	source Source
	// number of streams; events are encoded only if there are any
	watchers atomic.Int64
	wake     chan struct{} // the first stream has begun

	mu     sync.Mutex
	latest *frame

	history   *history
	last      *State    // state of the last event or point
	at        time.Time // time of last
	lastPoint *State    // state of the last point
	pointAt   time.Time
}

// frame is an event, and a channel that is closed when the next event is published.
type frame struct {
	event []byte
	next  chan struct{}
}

func newSampler(source Source) *sampler {
	return &sampler{
		source: source, wake: make(chan struct{}, 1),
		latest: &frame{next: make(chan struct{})}, history: newHistory(),
	}
}

// run samples until the context ends.
func (p *sampler) run(ctx context.Context) {
	ticks := time.NewTicker(frameInterval)
	defer ticks.Stop()
	p.lastPoint, p.pointAt = p.source.State(), time.Now()
	p.last, p.at = p.lastPoint, p.pointAt
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

// sample adds a point, publishes an event, or both, when their time has come.
func (p *sampler) sample(now time.Time) {
	point, watched := now.Sub(p.pointAt) >= pointInterval-frameInterval/2, p.watchers.Load() > 0
	if !point && !watched {
		return
	}
	state := p.source.State()
	if point {
		p.history.add(between(p.lastPoint, state, now.Sub(p.pointAt)))
		p.lastPoint, p.pointAt = state, now
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
		return // cannot fail for numbers and text
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.latest
	p.latest = &frame{event: event, next: make(chan struct{})}
	close(before.next)
}

// watch counts a stream until leave is called, and returns the current frame.
func (p *sampler) watch() (now *frame, leave func()) {
	if p.watchers.Add(1) == 1 {
		select {
		case p.wake <- struct{}{}: // the last event may be old
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
