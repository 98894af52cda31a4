package resp

import (
	"math"
	"rlserver/resp/clientmem"
	"runtime"
	"time"
)

// The process takes what the keys weigh, which the engine knows at every moment; what clients hold, which is counted where it changes; and
// the rest, the overhead: connections, the runtime, and what the estimates are wrong by. The overhead is measured after a collection.
//
// maxmemory limits keys and overhead. What clients hold has a bound of its own, so no key is evicted for a client's buffers. A measurement
// cannot tell a buffer that has just been freed from anything else: so none is taken while clients hold much, and the overhead
// takes no more from the keys than baseOverhead and a ninth of what is left.

const (
	baseOverhead = 16 << 20 // bytes that the process may take beside keys and clients, however few keys there are
	quietClients = 1 << 20  // bytes that clients may hold while the overhead is measured, and a 64th of maxmemory
)

// MemoryTaken tells the server how many bytes the process could not do without a moment ago.
func (s *Server) MemoryTaken(bytes int64) {
	if held := s.memory.TakePeak(); held <= quietClients+s.Settings.MaxMemory()/64 {
		s.overhead.Store(bytes - s.Engine.Weight() - held - s.takeConnectionsPeak()*clientmem.ConnectionSize)
	}
	s.fitMemory()
}

// takeConnectionsPeak is how many connections there were at most since it was last asked.
func (s *Server) takeConnectionsPeak() (peak int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := int64(len(s.sessions))
	peak, s.connectionsPeak = max(s.connectionsPeak, now), now
	return peak
}

// smallMaxMemory is a maxmemory below which the server itself may take all there is: 4 to 6 MB.
const smallMaxMemory = 8 << 20

// warnOfMaxMemory has the log tell when maxmemory leaves no room.
func (s *Server) warnOfMaxMemory() {
	switch most := s.Settings.MaxMemory(); {
	case most == 0:
	case most < smallMaxMemory:
		s.Log.Warn("maxmemory is too small: the server itself takes some 4 MB of it, and commands that take memory are refused with OOM when none is left",
			"maxmemory", most, "advised", smallMaxMemory)
	case most < s.usedMemory()-s.clientMemory():
		s.Log.Warn("maxmemory is less than what is in use: keys are evicted, and commands that take memory may be refused with OOM",
			"maxmemory", most, "used", s.usedMemory()-s.clientMemory())
	}
}

// clientMemory is what all clients take, in bytes.
func (s *Server) clientMemory() int64 {
	return s.memory.Bytes.Load() + int64(s.clients())*clientmem.ConnectionSize
}

// usedMemory is how much the process cannot do without, in bytes.
func (s *Server) usedMemory() int64 {
	return max(0, s.Engine.Weight()+s.overhead.Load()+s.clientMemory())
}

// fitMemory tells the engine what is configured, and what that leaves to the keys, and the clients what they may hold.
func (s *Server) fitMemory() {
	s.Engine.SetEviction(s.Settings.Policy(), int(s.Settings.MemorySamples.Load()))
	budget := int64(math.MaxInt64)
	if most := s.Settings.MaxMemory(); most > 0 {
		budget = max(most-s.overhead.Load(), (most-baseOverhead)/9*8)
	}
	s.Engine.SetBudget(budget)
	limit := s.Settings.ClientsLimit()
	s.limits.Clients.Store(limit)
	s.memory.Normal.Limit.Store(limit)
	s.memory.Unauthenticated.Limit.Store(s.Settings.PreauthMemory.Load())
}

// relieveAll closes clients that hold more than they may since the limits have changed. No lock is held.
func (s *Server) relieveAll() {
	s.relieve(&s.memory.Normal)
	s.relieve(&s.memory.Unauthenticated)
}

// makeRoom evicts keys before a call that may need room, and tells whether it may have that.
func (s *session) makeRoom() bool {
	room := s.Tx.MakeRoom(s.server.Clock())
	if !room {
		s.server.crowdedOut.Add(1)
		s.server.doubtOverhead()
	}
	return room
}

// doubtOverhead has the overhead measured anew if it is more than the keys explain, once a second at most: what was measured may be gone.
func (s *Server) doubtOverhead() {
	if s.overhead.Load() > baseOverhead+s.Engine.Weight()/8 && s.seldom(&s.doubted, time.Second) {
		go runtime.GC()
	}
}
