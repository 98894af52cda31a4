package resp

import (
	"math"
	"runtime"
	"time"

	"rlserver/engine"
	"rlserver/resp/command"
)

// The memory of the process has three parts: the keys, whose weight the engine counts; the memory
// of clients, which is counted where it changes; and the rest, the overhead: connections, the
// runtime, and the error of the estimates. The overhead is measured after a garbage collection.
//
// maxmemory limits keys and overhead. The memory of clients has a limit of its own, so no key is
// evicted for a client's buffers. A measurement cannot distinguish a buffer that has just been
// freed. So none is taken while clients hold much, and the overhead takes at most baseOverhead and
// a ninth of the rest from the keys. Nor can it distinguish a connection that has just been closed.
// So it only gives the minimum and the maximum of the overhead.

const (
	// bytes of overhead that maxmemory allows for, however few keys there are
	baseOverhead             = 16 << 20
	maxClientsWhileMeasuring = 1 << 20 // bytes; plus a 64th of maxmemory
)

// MemoryTaken records the memory of the process in use, in bytes, as measured after a collection.
func (s *Server) MemoryTaken(bytes int64) {
	if held := s.memory.TakePeak(); held <= maxClientsWhileMeasuring+s.Settings.MaxMemory()/64 {
		now, peak := s.takeConnectionPeak()
		// including the connections of now, of the peak, or between
		keys := s.Engine.Memory()
		rest := bytes - keys.Weight() - keys.Idle() - held
		s.overhead.Store(max(rest-peak, min(s.overhead.Load(), rest-now)))
	}
	s.applyMemoryLimits()
}

// takeConnectionPeak returns the bytes that connections take now, without their accounts, and the
// maximum since the last call.
func (s *Server) takeConnectionPeak() (now, peak int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, peak = s.connectionBytes, s.connectionPeak
	s.connectionPeak = now
	return now, peak
}

// smallMaxMemory is a maxmemory in bytes below which little is left for keys, as the server itself
// takes 4 to 6 MB.
const smallMaxMemory = 8 << 20

// warnAboutMaxMemory logs a warning if maxmemory leaves no memory for keys.
func (s *Server) warnAboutMaxMemory() {
	switch most := s.Settings.MaxMemory(); {
	case most == 0:
	case most < smallMaxMemory:
		s.Log.Warn("maxmemory is too small: the server itself takes about 4 MB of it, and commands that take memory "+
			"are refused with OOM when none is left",
			"maxmemory", most, "advised", smallMaxMemory)
	case most < s.usedMemory()-s.clientMemory():
		s.Log.Warn("maxmemory is less than what is in use: keys are evicted, and commands that take memory may be "+
			"refused with OOM",
			"maxmemory", most, "used", s.usedMemory()-s.clientMemory())
	}
}

// clientMemory returns the memory of all clients, in bytes.
func (s *Server) clientMemory() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.memory.Bytes.Load() + s.connectionBytes
}

// usedMemory returns the memory in use by keys, clients and overhead, in bytes.
func (s *Server) usedMemory() int64 {
	return max(0, s.Engine.Memory().Weight()+s.overhead.Load()+s.clientMemory())
}

// applyMemoryLimits applies the settings of memory: the budget of the keys and the bounds of
// reservations to the engine, the limits of clients to their pools.
func (s *Server) applyMemoryLimits() {
	s.Engine.SetEviction(s.Settings.Policy(), int(s.Settings.MemorySamples.Load()))
	budget := int64(math.MaxInt64)
	if most := s.Settings.MaxMemory(); most > 0 {
		budget = max(most-s.overhead.Load(), (most-baseOverhead)/9*8)
	}
	s.Engine.SetBudget(budget)
	s.Engine.SetBound(s.keyBound())
	s.Engine.Memory().Reservations.Set(s.Settings.MaxReservations.Load(), s.Settings.SettledRetention.Load())
	limit := s.Settings.ClientsLimit()
	s.limits.Clients.Store(limit)
	s.memory.Normal.Limit.Store(limit)
	s.memory.Unauthenticated.Limit.Store(s.Settings.PreauthMemory.Load())
}

// MakeRoom implements executor.Origin. A call with many words evicts in proportion to them:
// otherwise others would have to, or the keys would exceed maxmemory more with each such call.
func (s *session) MakeRoom(p command.Prepared) (room bool) {
	turns := 1 + growth(p.Words)/evictedInTurn
	evict := func(tx *engine.Tx, now int64) (room bool) {
		for range turns {
			if !tx.MakeRoom(now) {
				break
			}
			if room = true; !s.Env.Engine.Crowded() {
				break
			}
		}
		return room
	}
	if s.evictKeys(evict) || s.spared(&p) {
		return true
	}
	s.server.remeasureOverhead()
	return false
}

const (
	evictedInTurn = 2 << 10 // bytes: Tx.MakeRoom evicts at least about as many
	wordCost      = 64      // about how many bytes a word costs: a key and its value twice that
)

// growth returns about how many bytes a call adds to the keys.
func growth(words [][]byte) (bytes int) {
	for _, w := range words {
		bytes += wordCost + len(w)
	}
	return bytes
}

// evictKeys calls evict until it reports that there is enough memory, once for each partition with
// keys.
func (s *session) evictKeys(evict func(tx *engine.Tx, now int64) (enough bool)) (enough bool) {
	before, list := s.at, s.server.partitions()
	cmd, words := s.Command, s.Words
	s.Command, s.Words = nil, nil // the events of evictions are no call's
	defer func() {
		s.use(before)
		s.Command, s.Words = cmd, words
	}()
	first := s.Random.IntN(len(list))
	for i := range list {
		p := list[(first+i)%len(list)]
		if p.group < 0 {
			continue
		}
		if s.use(p); evict(s.Tx, s.Env.Clock()) {
			return true
		}
	}
	return false
}

// EvictFor implements the connection of command.Call.
func (s *session) EvictFor(bytes int64) {
	s.evictKeys(func(tx *engine.Tx, now int64) bool { return tx.MakeRoomFor(now, bytes) })
}

// remeasureOverhead starts a collection, at most once a second, if the measured overhead is larger
// than the keys explain: part of it may have been freed since.
func (s *Server) remeasureOverhead() {
	if s.overhead.Load() <= baseOverhead+s.Engine.Memory().Weight()/8 {
		return
	}
	if _, ok := s.allows(&s.remeasure, time.Second); ok {
		go runtime.GC()
	}
}
