package executor

import (
	"time"

	"rlserver/resp/command"
	"rlserver/resp/diagnostics"
	"rlserver/resp/wire"
)

// Calls that take long enough are in the slow log and are events of LATENCY. While there are
// monitors, every call is reported.

// Monitor gets a line for each call.
type Monitor interface {
	// Show gets lines of calls by an origin. It does not wait, and reports whether it keeps them:
	// then nobody changes them. No lock is held.
	Show(lines []byte, by Origin) (kept bool)
}

// SetMonitors replaces the monitors, and applies the settings of the slow log and of latencies.
func (x *Executor) SetMonitors(list []Monitor) {
	x.monitors.Store(&list)
	after := min(diagnostics.SlowAfter(x.env.Settings), diagnostics.SpikeAfter(x.env.Settings))
	if len(list) > 0 {
		after = 0
	}
	x.reportAfter.Store(int64(after))
}

// Monitors returns the number of monitors.
func (x *Executor) Monitors() int {
	if list := x.monitors.Load(); list != nil {
		return len(*list)
	}
	return 0
}

// Measure counts calls that have run together since begun, and returns when they ended. The times
// of single calls are not known: each counts with an equal share.
func (r *Runner) Measure(calls []command.Prepared, begun time.Duration) (end time.Duration) {
	r.clock.now, end = r.executor.env.Time.Read()
	r.clock.elapsed, r.clock.fresh = end, true
	share := end - begun
	if len(calls) > 1 { // a division takes long
		share /= time.Duration(len(calls))
	}
	for i := 0; i < len(calls); {
		c, first := calls[i].Command, i
		for i < len(calls) && calls[i].Command == c {
			i++
		}
		r.Meter.Add(c.Index, int64(i-first), share)
	}
	if took := end - begun; int64(took) >= r.executor.reportAfter.Load() {
		r.report(calls, took)
	}
	if !r.Executing {
		r.executed, r.ShownInside = nil, 0
	}
	return end
}

// report passes calls that have run together, and have taken took, to the slow log, LATENCY and the
// monitors.
func (r *Runner) report(calls []command.Prepared, took time.Duration) {
	x := r.executor
	if took >= diagnostics.SlowAfter(x.env.Settings) {
		r.logSlow(calls, took)
	}
	if took >= diagnostics.SpikeAfter(x.env.Settings) {
		event := diagnostics.SlowCommand
		if calls[0].Command.Flags&command.Fast != 0 {
			event = diagnostics.SlowFastCommand
		}
		x.env.Latency.Add(event, r.clock.now/1000, took.Milliseconds())
	}
	if !r.Executing {
		r.show(calls)
	}
}

// logSlow adds calls to the slow log. The times of single calls are not known: if their shares are
// below the limit, the first call is logged with the time of all.
func (r *Runner) logSlow(calls []command.Prepared, took time.Duration) {
	share, limit := took/time.Duration(len(calls)), diagnostics.SlowAfter(r.executor.env.Settings)
	if share < limit {
		calls, share = calls[:1], took
	}
	env := r.executor.env
	for i := range calls {
		p := &calls[i]
		if p.Command.Flags&command.SkipSlowlog == 0 {
			env.Slowlog.Add(diagnostics.SlowCall{
				Time: r.clock.now / 1000, Took: share, Address: r.origin.Address(), Name: r.origin.Name(),
			}, diagnostics.Redacted(p.Command.FullName(), p.Words), env.Settings.SlowlogMaxLen.Load())
		}
	}
}

// LogIfSlow adds a call to the slow log if it has taken long enough.
func (r *Runner) LogIfSlow(p command.Prepared, took time.Duration) {
	if took > 0 && took >= diagnostics.SlowAfter(r.executor.env.Settings) {
		r.logSlow([]command.Prepared{p}, took)
	}
}

// maxKeptLines is the capacity of lines for monitors that a Runner keeps, in bytes.
const maxKeptLines = 4 << 10

// show shows the calls of a transaction that has just ended, and calls, to the monitors. These see
// them when no lock is held.
func (r *Runner) show(calls []command.Prepared) {
	list := r.executor.monitors.Load()
	if list == nil || len(*list) == 0 || r.executor.loading.Load() != 0 {
		return
	}
	for i := range r.executed {
		r.showCall(&r.executed[i], r.executed[i].DB, *list)
	}
	for i := range calls {
		r.showCall(&calls[i], r.DB, *list)
	}
	r.sendLines(*list)
}

// showCall makes the line of a call for the monitors, unless an operator's, as in Redis; those of a
// script's calls follow it. Many lines are sent in pieces.
func (r *Runner) showCall(p *command.Prepared, db int, monitors []Monitor) {
	if p.Command.Flags&command.Admin == 0 {
		r.shown = diagnostics.AppendCall(r.shown, r.clock.now, db, r.origin.Source(),
			diagnostics.Redacted(p.Command.FullName(), p.Words))
	}
	if p.Inside != nil {
		r.shown = append(r.shown, *p.Inside...)
	}
	if len(r.shown) >= wire.FlushSize {
		r.sendLines(monitors)
	}
}

// sendLines sends lines to the monitors. No origin waits for a monitor.
func (r *Runner) sendLines(monitors []Monitor) {
	if len(r.shown) == 0 {
		return
	}
	if len(r.shown) >= wire.FlushSize {
		r.origin.HoldLines(cap(r.shown))
	}
	kept := false
	for _, m := range monitors {
		kept = m.Show(r.shown, r.origin) || kept
	}
	if r.shown = r.shown[:0]; kept || cap(r.shown) > maxKeptLines {
		r.shown = nil
		r.origin.HoldLines(0)
	}
}
