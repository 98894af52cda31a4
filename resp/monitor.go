package resp

import (
	"net"
	"strings"
	"time"

	"rlserver/engine"
	"rlserver/resp/clientmem"
	"rlserver/resp/command"
	"rlserver/resp/diagnostics"
	"rlserver/resp/wire"
	"rlserver/storage"
)

func init() {
	command.Register(
		&command.Command{Name: "monitor", Arity: 1,
			Flags: command.Admin | command.NoScript | command.Loading | command.Stale, Group: "server",
			Since: "1.0.0", Summary: "Listen for all requests received by the server in real time", Run: monitor},
	)
}

const (
	errMonitorInMulti = engine.Error("ERR MONITOR isn't allowed for DENY BLOCKING client")
	errMonitorKeys    = engine.Error("ERR Replica can't interact with the keyspace") // as in Redis
)

// refuseMonitor returns why a client in MONITOR may not run a call with these flags, or nil.
func refuseMonitor(flags command.Flags) error {
	if flags&(command.Readonly|command.Write) != 0 {
		return errMonitorKeys
	}
	return nil
}

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
	c.Reply.OK()
	return nil
}

// mayMonitor reports whether the user may run MONITOR. Any goroutine may call it.
func (s *session) mayMonitor() bool {
	return permission(s.profile.account.Load())("monitor")
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
	var list []*session
	for _, ss := range s.sessions {
		if ss.profile.monitors.Load() {
			list = append(list, ss)
		}
	}
	s.monitors.Store(&list)
	s.setReportAfter()
}

// applyDiagnostics applies the settings of the slow log and of latencies.
func (s *Server) applyDiagnostics() {
	if yes := s.Settings.LatencyTracking.Load() != 0; yes != s.Stats.TracksLatency() {
		s.Stats.TrackLatency(yes)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.setReportAfter()
}

// setReportAfter computes the time from which calls are reported. s.mu is held.
func (s *Server) setReportAfter() {
	after := min(diagnostics.SlowAfter(s.Settings), diagnostics.SpikeAfter(s.Settings))
	if s.monitoring() > 0 {
		after = 0
	}
	s.reportAfter.Store(int64(after))
}

// report passes calls that have run together, and have taken took, to the slow log, LATENCY and the
// monitors. These see the calls of EXEC when no lock is held.
func (s *session) report(calls []command.Prepared, took time.Duration) {
	if took >= diagnostics.SlowAfter(s.server.Settings) {
		s.logSlow(calls, took)
	}
	if took >= diagnostics.SpikeAfter(s.server.Settings) {
		event := diagnostics.SlowCommand
		if calls[0].Command.Flags&command.Fast != 0 {
			event = diagnostics.SlowFastCommand
		}
		s.server.Latency.Add(event, s.clock.now/1000, took.Milliseconds())
	}
	if s.server.monitoring() > 0 && !s.Executing && s.server.loading.Load() == 0 {
		list := *s.server.monitors.Load()
		for i := range s.executed {
			s.showCall(&s.executed[i], s.executed[i].DB, list)
		}
		for i := range calls {
			s.showCall(&calls[i], s.DB, list)
		}
		s.sendLines(list)
	}
}

// logSlow adds calls to the slow log. The times of single calls are not known: if their shares are
// below the limit, the first call is logged with the time of all.
func (s *session) logSlow(calls []command.Prepared, took time.Duration) {
	share, limit := took/time.Duration(len(calls)), diagnostics.SlowAfter(s.server.Settings)
	if share < limit {
		calls, share = calls[:1], took
	}
	for i := range calls {
		p := &calls[i]
		if p.Command.Flags&command.SkipSlowlog == 0 {
			s.server.Slowlog.Add(diagnostics.SlowCall{
				Time: s.clock.now / 1000, Took: share, Address: s.remoteAddress(), Name: textOf(&s.profile.name),
			}, diagnostics.Redacted(p.Command.FullName(), p.Words), s.server.Settings.SlowlogMaxLen.Load())
		}
	}
}

// LogIfSlow implements the connection of command.Call.
func (s *session) LogIfSlow(p command.Prepared, took time.Duration) {
	if took > 0 && took >= diagnostics.SlowAfter(s.server.Settings) {
		s.logSlow([]command.Prepared{p}, took)
	}
}

// maxKeptLines is the capacity of lines for monitors that a session keeps, in bytes.
const maxKeptLines = 4 << 10

// showCall makes the line of a call for the monitors, unless an operator's, as in Redis. Many lines
// are sent in pieces.
func (s *session) showCall(p *command.Prepared, db int, monitors []*session) {
	if p.Command.Flags&(command.Admin|command.SkipMonitor) == 0 {
		s.shown = diagnostics.AppendCall(s.shown, s.clock.now, db, s.addressForMonitors(),
			diagnostics.Redacted(p.Command.FullName(), p.Words))
	}
	if len(s.shown) >= wire.FlushSize {
		s.sendLines(monitors)
	}
}

// sendLines sends lines to the monitors. No client waits for a monitor: one that does not read is
// closed.
func (s *session) sendLines(monitors []*session) {
	if len(s.shown) == 0 {
		return
	}
	counted := s.guard.Memory.Part(clientmem.Args)
	if len(s.shown) >= wire.FlushSize {
		s.guard.Memory.Set(clientmem.Args, int(counted)+cap(s.shown))
		s.evictClientsIfNeeded()
	}
	for _, m := range monitors {
		if m == s {
			s.Reply.B = append(s.Reply.B, s.shown...)
			continue
		}
		m.guard.Push(s.shown)
		m.evictClientsIfNeeded()
	}
	if s.shown = s.shown[:0]; cap(s.shown) > maxKeptLines {
		s.shown = nil
		s.guard.Memory.Set(clientmem.Args, int(counted))
	}
}

// addressForMonitors returns the client's address as MONITOR shows it.
func (s *session) addressForMonitors() string {
	if _, unix := s.guard.LocalAddr().(*net.UnixAddr); unix {
		return "unix:" + strings.TrimSuffix(s.remoteAddress(), ":0")
	}
	return s.remoteAddress()
}

// monitoring returns the number of monitors.
func (s *Server) monitoring() int {
	if list := s.monitors.Load(); list != nil {
		return len(*list)
	}
	return 0
}

// ObserveSync records how long a sync of the log has taken.
func (s *Server) ObserveSync(took time.Duration) {
	s.Stats.Fsync.Observe(took)
	if took >= diagnostics.SpikeAfter(s.Settings) && s.Settings.Store().Sync == storage.SyncAlways {
		s.Latency.Add(diagnostics.SlowSync, s.Clock()/1000, took.Milliseconds())
	}
}
