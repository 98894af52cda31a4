package pubsub

import (
	"slices"
	"sync"
	"time"

	"rlserver/resp/pubsub/relay"
	"rlserver/resp/wire"
)

// Outbox has the messages of a batch of calls, in order. The zero value is empty. One goroutine at
// a time uses it.
type Outbox struct {
	runs []run
	size int // bytes of the messages

	event bool // what is added is an event of a change

	frames   []byte    // the messages for other nodes of a cluster
	messages int       // their number
	spare    [2][]byte // memory of messages that nobody needs any more, in RESP3 and RESP2
}

// run is messages that follow each other and have the same subscribers.
type run struct {
	targets []*subscription
	resp3   []byte
	resp2   []byte // made when it is needed; empty before
	starts  []int  // of the messages in resp3
	self    *Client
	event   bool // events of changes
	kept    bool // a client still needs the bytes
	whole   bool // no message is added: the versions differ in more than the first byte
}

// longRun is the number of bytes from which messages begin another run.
const longRun = 64 << 10

// Size returns the bytes of the messages that were not delivered.
func (o *Outbox) Size() int { return o.size }

// add adds a message for the subscribers of a topic, and returns their number. The hub's lock is
// held.
func (o *Outbox) add(self *Client, t *topic, channel, payload []byte) int {
	targets := t.targets()
	if self != nil && t.subscribers[self] != nil {
		mark := len(self.Own)
		if self.Own = t.appendMessage(self.Own, channel, payload); !self.resp3 {
			self.Own[mark] = '*'
		}
		if o.event {
			self.addEvent(mark)
		}
	} else {
		self = nil
	}
	last := len(o.runs) - 1
	if last < 0 || o.runs[last].event != o.event || !o.runs[last].fits(targets, self) {
		o.runs = append(o.runs, run{targets: targets, resp3: o.spare[0], resp2: o.spare[1], self: self, event: o.event})
		o.spare = [2][]byte{}
		last++
	}
	r := &o.runs[last]
	before := len(r.resp3)
	r.starts = append(r.starts, before)
	r.resp3 = t.appendMessage(r.resp3, channel, payload)
	o.size += len(r.resp3) - before
	return len(targets)
}

// Direct adds a message to clients, in both versions of the protocol. Nobody may change its bytes.
func (o *Outbox) Direct(to []*Client, resp3, resp2 []byte) {
	o.size += len(resp3)
	if n := len(o.runs); n > 0 && len(to) == 1 {
		last := &o.runs[n-1]
		if last.whole && len(last.targets) == 1 && last.targets[0].client == to[0] && len(last.resp3) < longRun {
			last.resp3, last.resp2 = append(last.resp3, resp3...), append(last.resp2, resp2...)
			return
		}
	}
	targets := make([]*subscription, len(to))
	for i, c := range to {
		targets[i] = &subscription{client: c}
	}
	o.runs = append(o.runs, run{
		targets: targets, resp3: slices.Clip(resp3), resp2: slices.Clip(resp2), kept: true, whole: true,
	})
}

// fits reports whether a message for subscribers belongs to the run.
func (r *run) fits(targets []*subscription, self *Client) bool {
	return !r.whole && len(r.resp3) < longRun && r.self == self &&
		len(r.targets) == len(targets) && &r.targets[0] == &targets[0]
}

// appendMessage appends a message in RESP3, which begins with > instead of *.
func (t *topic) appendMessage(b, channel, payload []byte) []byte {
	if t.kind != Patterns {
		b = append(b, ">3\r\n"...)
		b = appendBulk(b, words[t.kind].message)
	} else {
		b = append(b, ">4\r\n"...)
		b = appendBulk(b, words[t.kind].message)
		b = appendBulk(b, t.name)
	}
	b = appendBulk(b, channel)
	return appendBulk(b, payload)
}

func appendBulk[T string | []byte](b []byte, text T) []byte {
	b = wire.AppendHeader(b, '$', int64(len(text)))
	b = append(b, text...)
	return append(b, '\r', '\n')
}

// bytes returns the messages in a version of the protocol.
func (r *run) bytes(resp3 bool) []byte {
	if resp3 {
		return r.resp3
	}
	if len(r.resp2) == 0 {
		r.resp2 = append(r.resp2, r.resp3...)
		for _, at := range r.starts {
			r.resp2[at] = '*'
		}
	}
	return r.resp2
}

// DropEvents removes the events: the changes may be lost.
func (o *Outbox) DropEvents() {
	o.runs = slices.DeleteFunc(o.runs, func(r run) bool {
		if r.event {
			o.size -= len(r.resp3)
		}
		return r.event
	})
}

// recycle keeps the memory of messages that were delivered, if no client needs it.
func (o *Outbox) recycle() {
	for i := range o.runs {
		if r := &o.runs[i]; !r.kept && cap(r.resp3) <= maxSpare {
			o.spare = [2][]byte{r.resp3[:0], r.resp2[:0]}
		}
	}
}

// clear removes the messages.
func (o *Outbox) clear() {
	clear(o.runs)
	if o.runs = o.runs[:0]; cap(o.runs) > maxKept {
		o.runs = nil
	}
	o.frames, o.messages, o.size = nil, 0, 0
}

// relay adds a message for other nodes.
func (o *Outbox) relay(channel, payload []byte) {
	before := len(o.frames)
	o.frames = relay.Append(o.frames, channel, payload)
	o.messages++
	o.size += len(o.frames) - before
}

// What an outbox keeps between batches: memory for so many runs, and so many bytes of messages.
const (
	maxKept  = 16
	maxSpare = 4 << 10
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
