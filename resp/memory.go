package resp

import (
	"math"

	"rlserver/engine"
)

// What the process takes is what the keys weigh, which the engine knows at every moment, and what else there is: buffers, stacks, and
// whatever the estimates are wrong by. That is measured now and then, after a collection, and taken to be the same until the next.

// MemoryTaken tells the server how many bytes the process could not do without a moment ago.
func (s *Server) MemoryTaken(bytes int64) {
	s.overhead.Store(bytes - s.engine.Weight())
	s.fitMemory()
}

// usedMemory is how much the process cannot do without, in bytes: what maxmemory limits.
func (s *Server) usedMemory() int64 { return max(0, s.engine.Weight()+s.overhead.Load()) }

// fitMemory tells the engine what is configured, and what that leaves to the keys.
func (s *Server) fitMemory() {
	s.engine.SetEviction(s.settings.policy(), int(s.settings.memorySamples.Load()))
	budget := int64(math.MaxInt64)
	if most := s.settings.MaxMemory(); most > 0 {
		budget = most - s.overhead.Load()
	}
	s.engine.SetBudget(budget)
}

// makeRoom evicts keys before a call that may need room, and tells whether it may have that.
func (s *session) makeRoom() bool {
	room, position := s.tx.MakeRoom(s.server.clock())
	s.position = max(s.position, position)
	if !room {
		s.server.crowdedOut.Add(1)
	}
	return room
}

// makeRoomFor evicts keys before a call that takes much more memory than it has words. Whether there is room then is found out under its locks.
func (s *session) makeRoomFor(bytes int64) {
	if s.server.loading.Load() == 0 {
		s.position = max(s.position, s.tx.MakeRoomFor(s.server.clock(), bytes))
	}
}

// makeRoomToStretch does so before a string is stretched to so many bytes.
func (s *session) makeRoomToStretch(name []byte, length int64) {
	if length >= engine.LargeGrowth {
		s.makeRoomFor(length - s.server.engine.StringLength(s.db(), s.server.engine.Key(name)))
	}
}
