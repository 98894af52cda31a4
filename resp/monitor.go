package resp

import (
	"net"
	"strings"
	"time"

	"rlserver/engine"
	"rlserver/internal/storage"
	"rlserver/resp/clientmem"
	"rlserver/resp/command"
	"rlserver/resp/diagnostics"
	"rlserver/resp/executor"
)

func init() {
	command.Register("server",
		&command.Command{Name: "monitor", Arity: 1,
			Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Run: monitor},
	)
}

const (
	errMonitorInMulti = engine.Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
	errMonitorKeys    = engine.Error("ERR Replica can't interact with the keyspace") // as in Redis
)

// monitor handles MONITOR. A second one has no reply, as in Redis.
func monitor(c *command.Call) error {
	s := sessionOf(c)
	switch {
	case c.Executing:
		return errMonitorInMulti
	case s.profile.monitors.Load():
		return nil
	}
	s.setMonitoring(true)
	// the user may have changed before usersChanged could find the monitor
	s.closing = !s.mayMonitor()
	return c.ReplyOK(nil)
}

// mayMonitor reports whether the user may run MONITOR. Any goroutine may call it.
func (s *session) mayMonitor() bool {
	return s.server.permission(s.profile.account.Load())("monitor")
}

// setMonitoring starts or stops showing the calls of all clients to this one.
func (s *session) setMonitoring(yes bool) {
	if s.profile.monitors.Load() == yes {
		return
	}
	s.profile.monitors.Store(yes)
	s.guard.Listens.Store(yes)
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.listMonitors()
}

// listMonitors updates the list of monitors. s.mu is held.
func (s *Server) listMonitors() {
	var list []executor.Monitor
	for _, ss := range s.sessions {
		if ss.profile.monitors.Load() {
			list = append(list, ss)
		}
	}
	s.executor.SetMonitors(list)
}

// applyDiagnostics applies the settings of the slow log and of latencies.
func (s *Server) applyDiagnostics() {
	if yes := s.Settings.LatencyTracking.Load() != 0; yes != s.Stats.TracksLatency() {
		s.Stats.TrackLatency(yes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listMonitors()
}

// HoldLines implements executor.Origin.
func (s *session) HoldLines(bytes int) {
	m := &s.guard.Memory
	m.Set(clientmem.Args, int(m.Part(clientmem.Args))-s.lines+bytes)
	s.lines = bytes
	s.evictClientsIfNeeded()
}

// Show implements executor.Monitor. A monitor that does not read is closed.
func (s *session) Show(lines []byte, by executor.Origin) (kept bool) {
	if by == executor.Origin(s) {
		s.Reply.B = append(s.Reply.B, lines...)
		return false
	}
	defer s.evictClientsIfNeeded()
	return s.guard.PushShared(lines)
}

// Name implements executor.Origin.
func (s *session) Name() string { return textOf(&s.profile.name) }

// Source implements executor.Origin: the client's address as MONITOR shows it.
func (s *session) Source() string {
	if _, unix := s.guard.LocalAddr().(*net.UnixAddr); unix {
		return "unix:" + strings.TrimSuffix(s.Address(), ":0")
	}
	return s.Address()
}

// ObserveSync records how long a sync of the log has taken.
func (s *Server) ObserveSync(took time.Duration) {
	s.Stats.Fsync.Observe(took)
	if took >= diagnostics.SpikeAfter(s.Settings) && s.Settings.Store().Sync == storage.SyncAlways {
		s.Latency.Add(diagnostics.SlowSync, s.Clock()/1000, took.Milliseconds())
	}
}
