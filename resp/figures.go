package resp

import (
	"runtime/debug"
	"time"

	"rlserver/internal/acl"
	"rlserver/internal/clock"
	"rlserver/internal/stats"
	"rlserver/resp/command"
)

// Figures implements command.Server.
func (s *Server) Figures() command.Figures {
	t := s.totals()
	s.mu.Lock()
	stopping := s.draining
	s.mu.Unlock()
	since := s.executor.LoadingSince()
	waiting, timed := int64(0), int64(0)
	for _, p := range s.partitions() {
		waiting, timed = waiting+p.queues.Waiting.Load(), timed+p.queues.Timed.Load()
	}
	return command.Figures{
		Uptime: time.Since(s.Started), LoadingSince: since, Loading: since != 0, Stopping: stopping,
		Calls: t.calls, Errors: t.errors,
		Clients: int64(s.clients()), WaitingCalls: waiting, TimedCalls: timed,
		PausedCalls: s.held.Load(), Monitors: s.executor.Monitors(),
		Tracking: s.Tracking.Sizes(), Unnotified: s.listener.Dropped.Load(),
		Received: t.connections, Rejected: t.rejected, BytesIn: t.in, BytesOut: t.out,
		CallRate: s.rates.calls.PerSecond(), InRate: s.rates.in.PerSecond(), OutRate: s.rates.out.PerSecond(),
		FailedLogins: s.AccessLog.Count(acl.DeniedAuth), LoginTimeouts: s.loginTimeouts.Load(),
		RefusedLogins: s.Logins.Refused(), LoginSources: int64(s.Logins.Sources()),
		HandshakeFailures: s.handshakeFailures.Load(), CertificateExpiry: s.certificateExpiry(),
		EvictedClients: s.memory.Evicted.Load(), OutputLimit: s.memory.Unread.Load(),
		LargestInput: s.memory.LargestInput.Value(), LargestOutput: s.memory.LargestOutput.Value(),
		Memory: s.usedMemory(), PeakMemory: s.notePeak(), StartMemory: s.startup,
		ClientMemory: s.clientMemory(), UnauthenticatedMemory: s.memory.Unauthenticated.Bytes.Load(),
		Overhead: s.overhead.Load(), OutOfMemory: s.oomRefusals.Load(),
	}
}

// ResetFigures implements command.Server.
func (s *Server) ResetFigures() {
	s.resetTotals()
	s.oomRefusals.Store(0)
	s.AccessLog.ResetCounts()
	s.loginTimeouts.Store(0)
	s.Logins.Reset()
	s.handshakeFailures.Store(0)
	s.memory.Evicted.Store(0)
	s.memory.Unread.Store(0)
	s.Stats.Reset()
}

// certificateExpiry returns when the certificate of TLS expires, in Unix seconds; 0 without TLS.
func (s *Server) certificateExpiry() int64 {
	if !s.certificates.Loaded() {
		return 0
	}
	return s.certificates.Expiry().Unix()
}

// FreeMemory implements command.Server. It costs a garbage collection, so it runs once a second at
// most for all clients together.
func (s *Server) FreeMemory() {
	if _, ok := s.allows(&s.purge, time.Second); ok {
		debug.FreeOSMemory()
	}
}

// rates are the figures that INFO shows as instantaneous, over the last seconds.
type rates struct{ calls, in, out stats.Rate }

// StartSampling measures rates and the peak of memory once a second, until stop is called.
func (s *Server) StartSampling() (stop func()) { return clock.Every(time.Second, s.sample) }

func (s *Server) sample() {
	s.mu.Lock()
	sum := s.sinceStart()
	s.mu.Unlock()
	now := s.Time.Elapsed()
	s.rates.calls.Sample(now, sum.calls)
	s.rates.in.Sample(now, sum.in)
	s.rates.out.Sample(now, sum.out)
	s.notePeak()
	s.endShards(-1) // of clients that subscribed while the node stopped leading
}

// notePeak updates the peak of memory, and returns it.
func (s *Server) notePeak() int64 {
	used := s.usedMemory()
	for {
		peak := s.peakMemory.Load()
		if used <= peak || s.peakMemory.CompareAndSwap(peak, used) {
			return max(used, peak)
		}
	}
}
