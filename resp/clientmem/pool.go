package clientmem

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// pool is a number of clients that may hold so much together.
type Pool struct {
	clients *ClientMemory
	Bytes   atomic.Int64
	Limit   atomic.Int64
}

func (p *Pool) Crowded() bool { return p.Bytes.Load() > p.Limit.Load() }

func (p *Pool) add(bytes int64) {
	p.Bytes.Add(bytes)
	p.clients.add(bytes)
}

// clientMemory is what all clients hold.
type ClientMemory struct {
	Unauthenticated, Normal, Exempt Pool

	Bytes   atomic.Int64 // of all pools
	peak    atomic.Int64 // the most since takePeak
	Evicted atomic.Int64 // clients that were closed for what they held
	Unread  atomic.Int64 // clients that were closed for replies that they did not read

	Evicting sync.Mutex
	Largest  [2]recentMax // for INFO: of input buffers and of unread replies
}

func (m *ClientMemory) Init() {
	for _, p := range []*Pool{&m.Unauthenticated, &m.Normal, &m.Exempt} {
		p.clients = m
		p.Limit.Store(math.MaxInt64)
	}
}

func (m *ClientMemory) add(bytes int64) {
	now := m.Bytes.Add(bytes)
	for peak := m.peak.Load(); now > peak && !m.peak.CompareAndSwap(peak, now); {
		peak = m.peak.Load()
	}
}

// takePeak is the most that was held since it was last asked.
func (m *ClientMemory) TakePeak() int64 { return max(m.peak.Swap(m.Bytes.Load()), m.Bytes.Load()) }

func (m *ClientMemory) noteLargest(part HeldPart, bytes int64) {
	switch part {
	case HeldInput:
		m.Largest[0].note(bytes)
	case HeldOutput:
		m.Largest[1].note(bytes)
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

func (r *recentMax) Value() (most int64) {
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
