package resp

import (
	"runtime/debug"
	"sync/atomic"
	"time"

	"rlserver/internal/acl"
	"rlserver/internal/clock"
	"rlserver/internal/stats"
	"rlserver/resp/command"
	"rlserver/resp/tracking"
)

// profile is the part of a session that other goroutines may read, for CLIENT LIST and INFO. Only
// the connection's own goroutine writes to it, except killed.
type profile struct {
	database atomic.Int32
	resp     atomic.Int32
	active   atomic.Int64 // elapsed ms at the last call
	calls    atomic.Int64 // as of the last batch
	errors   atomic.Int64 // error replies, as of the last batch
	batches  atomic.Int64 // of the calls
	// bytes of the largest reply that was counted, see MayReply
	largest atomic.Int64
	// commands in a transaction plus 1, as of the last batch; 0 outside MULTI
	queued  atomic.Int32
	account atomic.Pointer[acl.Account] // the user that the connection acts as
	command atomic.Pointer[command.Command]
	name    atomic.Pointer[string]
	library atomic.Pointer[string]
	version atomic.Pointer[string]
	// nil: it has never tracked keys
	tracking atomic.Pointer[tracking.Client]

	noEvict  atomic.Bool
	monitors atomic.Bool // it has sent MONITOR
	paused   atomic.Bool // its call waits for the end of a pause
	killed   atomic.Bool // it is being closed: CLIENT LIST and KILL leave it out
	// its call changes the users of a cluster
	changesUsers atomic.Bool
}

// updateProfile records the current command and the time, including calls that are refused. c is
// nil if the command is unknown. It stores only values that have changed, as an atomic store costs
// more than a load.
func (s *session) updateProfile(c *command.Command, elapsed time.Duration) {
	if now := elapsed.Milliseconds(); s.profile.active.Load() != now {
		s.profile.active.Store(now)
	}
	if s.profile.command.Load() != c {
		s.profile.command.Store(c)
	}
}

// selectDatabase changes the database of the following calls.
func (s *session) selectDatabase(db int) {
	s.DB = db
	s.profile.database.Store(int32(db))
}

// FlushStats implements the connection of command.Call.
func (s *session) FlushStats() { s.Meter.Flush() }

// totals are counters over all sessions since the start or the last CONFIG RESETSTAT.
type totals struct {
	connections, rejected int64
	calls, errors         int64
	batches               int64 // of the calls
	in, out               int64 // bytes
}

func (t *totals) add(s *session) {
	t.calls += s.profile.calls.Load()
	t.errors += s.profile.errors.Load()
	t.batches += s.profile.batches.Load()
	t.in += s.guard.BytesIn.Load()
	t.out += s.guard.BytesOut.Load()
}

func (t totals) minus(u totals) totals {
	return totals{
		t.connections - u.connections, t.rejected - u.rejected, t.calls - u.calls, t.errors - u.errors,
		t.batches - u.batches, t.in - u.in, t.out - u.out,
	}
}

func (s *Server) totals() totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sinceStart().minus(s.baseline)
}

// Load returns the number of calls since the start and of the batches they came in: their quotient
// is the depth of pipelines.
func (s *Server) Load() (calls, batches int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.sinceStart()
	return sum.calls, sum.batches
}

// sinceStart returns the totals of all sessions, open and ended. s.mu is held.
func (s *Server) sinceStart() totals {
	sum := s.ended
	for _, ss := range s.sessions {
		sum.add(ss)
	}
	return sum
}

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
	s.mu.Lock()
	s.baseline = s.sinceStart()
	s.mu.Unlock()
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
