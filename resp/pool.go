package resp

import (
	"cmp"
	"math"
	"slices"
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

// relieve closes the largest clients of a pool until the others hold no more than they may. It may be called under any lock but Server.mu.
func (s *Server) relieve(p *pool) {
	s.memory.evicting.Lock()
	defer s.memory.evicting.Unlock()
	if !p.crowded() {
		return
	}
	type candidate struct {
		session *session
		bytes   int64
	}
	var all []candidate
	s.mu.Lock()
	for _, ss := range s.sessions {
		if bytes := ss.guard.held.total(); bytes > 0 && ss.pool() == p {
			all = append(all, candidate{ss, bytes})
		}
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(b.bytes, a.bytes) })
	for _, c := range all {
		if !p.crowded() {
			return
		}
		s.evict(c.session, c.bytes)
	}
}

// evict closes a client for what it holds.
func (s *Server) evict(ss *session, bytes int64) {
	line := ss.describe()
	if !ss.guard.held.close() {
		return
	}
	ss.profile.killed.Store(true)
	ss.guard.Conn.Close() // wakes its Read and fails its Write, wherever it is
	s.memory.evicted.Add(1)
	if more, ok := s.evictions.due(s.elapsed()); ok {
		s.log.Warn("a client was evicted: clients hold more memory than they may", "held", bytes, "client", line, "others_since_the_last_line", more)
	}
}

// pool is the one that a client is counted in.
func (s *session) pool() *pool {
	h := &s.guard.held
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pool
}

// choosePool has the client counted where it belongs now.
func (s *session) choosePool() {
	m := &s.server.memory
	s.guard.exempt.Store(s.authenticated && s.profile.noEvict.Load())
	switch {
	case !s.authenticated:
		s.guard.held.moveTo(&m.unauthenticated)
	case s.guard.exempt.Load():
		s.guard.held.moveTo(&m.exempt)
	default:
		s.guard.held.moveTo(&m.normal)
	}
}

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
