package pubsub

import (
	"sync"
	"time"
)

// One goroutine at a time delivers messages: that of the publisher who finds none, or, while others
// publish, one of the hub. What is published meanwhile waits for it, and is delivered together: the
// busier the publishers, the more messages a write to a subscriber has.

// maxPending is the number of bytes of messages that may wait. Above that, publishers wait for the
// delivery, which never waits for a socket.
const maxPending = 1 << 20

// delivery has the messages that wait for the goroutine that delivers.
type delivery struct {
	mu      sync.Mutex
	taken   sync.Cond // pending was taken
	pending []run
	size    int  // bytes in pending
	active  bool // a goroutine delivers
	writes  int  // of the last delivery; only the goroutine that delivers uses it
}

// order gives the messages of a batch their place among those of other publishers. It reports
// whether the publisher has to deliver them; otherwise they are with those that wait, and the
// outbox is empty. No lock is held.
func (h *Hub) order(o *Outbox) (own bool) {
	d := &h.delivery
	d.mu.Lock()
	for d.active && d.size > maxPending {
		d.taken.Wait()
	}
	if own = !d.active; own {
		d.active = true
	} else {
		d.pending = append(d.pending, o.runs...)
		d.size += o.size
	}
	d.mu.Unlock()
	if !own {
		o.clear()
	}
	return own
}

// deliver delivers the messages of a batch after order has reported true. No lock is held.
func (h *Hub) deliver(o *Outbox) {
	h.deliverRuns(o.runs)
	o.recycle()
	h.handOver()
	o.clear()
}

func (h *Hub) deliverRuns(list []run) {
	h.delivery.writes = 0
	for i := range list {
		list[i].deliver()
		h.delivery.writes += len(list[i].targets)
	}
	if h.Relieve != nil {
		h.Relieve()
	}
}

// handOver ends the delivery by a publisher: a goroutine delivers what has been published
// meanwhile.
func (h *Hub) handOver() {
	d := &h.delivery
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.active = len(d.pending) > 0; d.active {
		go h.deliverPending()
	}
}

// While several clients publish at the same time, the hub lets messages gather before it delivers
// them: the longer, the more writes a delivery takes.
const (
	minGather = 200 * time.Microsecond
	perWrite  = 30 * time.Microsecond // some times what a write takes
	maxGather = 2 * time.Millisecond
)

func (d *delivery) gather() time.Duration {
	return min(minGather+time.Duration(d.writes)*perWrite, maxGather)
}

// deliverPending delivers until nothing waits.
func (h *Hub) deliverPending() {
	d := &h.delivery
	for {
		time.Sleep(d.gather())
		d.mu.Lock()
		list := d.pending
		d.pending, d.size = nil, 0
		d.active = len(list) > 0
		d.taken.Broadcast()
		d.mu.Unlock()
		if len(list) == 0 {
			return
		}
		h.deliverRuns(merge(list))
	}
}

// merge joins runs that follow each other and have the same subscribers.
func merge(list []run) []run {
	merged := list[:1]
	for _, r := range list[1:] {
		last := &merged[len(merged)-1]
		if !last.fits(r.targets, r.self) {
			merged = append(merged, r)
			continue
		}
		before := len(last.resp3)
		last.resp3 = append(last.resp3, r.resp3...)
		for _, at := range r.starts {
			last.starts = append(last.starts, before+at)
		}
	}
	return merged
}

// deliver passes the messages to their subscribers.
func (r *run) deliver() {
	for _, s := range r.targets {
		if s.client != r.self {
			s.push(r)
		}
	}
}
