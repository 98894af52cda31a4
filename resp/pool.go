package resp

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// pool is a number of clients that may hold so much together.
type pool struct {
	clients *clientMemory
	bytes   atomic.Int64
	limit   atomic.Int64
}

func (p *pool) crowded() bool { return p.bytes.Load() > p.limit.Load() }

func (p *pool) add(bytes int64) {
	p.bytes.Add(bytes)
	p.clients.add(bytes)
}

// clientMemory is what all clients hold.
type clientMemory struct {
	unauthenticated, normal, exempt pool

	bytes   atomic.Int64 // of all pools
	peak    atomic.Int64 // the most since takePeak
	evicted atomic.Int64 // clients that were closed for what they held
	unread  atomic.Int64 // clients that were closed for replies that they did not read

	evicting sync.Mutex
	largest  [2]recentMax // for INFO: of input buffers and of unread replies
}

func (m *clientMemory) init() {
	for _, p := range []*pool{&m.unauthenticated, &m.normal, &m.exempt} {
		p.clients = m
		p.limit.Store(math.MaxInt64)
	}
}

func (m *clientMemory) add(bytes int64) {
	now := m.bytes.Add(bytes)
	for peak := m.peak.Load(); now > peak && !m.peak.CompareAndSwap(peak, now); {
		peak = m.peak.Load()
	}
}

// takePeak is the most that was held since it was last asked.
func (m *clientMemory) takePeak() int64 { return max(m.peak.Swap(m.bytes.Load()), m.bytes.Load()) }

func (m *clientMemory) noteLargest(part heldPart, bytes int64) {
	switch part {
	case heldInput:
		m.largest[0].note(bytes)
	case heldOutput:
		m.largest[1].note(bytes)
	}
}

// recentMax keeps the largest of the values of the last few seconds.
type recentMax struct {
	mu    sync.Mutex
	slots [8]struct{ second, value int64 }
}

func (r *recentMax) note(value int64) {
	second := time.Now().Unix()
	r.mu.Lock()
	defer r.mu.Unlock()
	slot := &r.slots[second%int64(len(r.slots))]
	if slot.second != second {
		slot.second, slot.value = second, 0
	}
	slot.value = max(slot.value, value)
}

func (r *recentMax) value() (most int64) {
	oldest := time.Now().Unix() - int64(len(r.slots))
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, slot := range r.slots {
		if slot.second > oldest {
			most = max(most, slot.value)
		}
	}
	return most
}
