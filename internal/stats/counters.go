package stats

import (
	"sync/atomic"
	"time"
)

// Counters are the counters of a server.
type Counters struct {
	Errors Errors

	// Durations of syncs of the log, and of snapshots.
	Fsync, Snapshot Histogram

	untracked atomic.Bool // latencies are not counted, see TrackLatency
	commands  []atomic.Pointer[command]
	groups    atomic.Pointer[[MaxGroups]GroupCalls]
}

// New returns counters for commands with the indexes 0 to commands-1.
func New(commands int) *Counters {
	return &Counters{commands: make([]atomic.Pointer[command], commands)}
}

// command holds the counters of one command.
type command struct {
	decisions Decisions
	stripes   [stripes]struct {
		calls, nanoseconds, rejected, failed atomic.Int64
		latency                              Histogram
	}
}

// of returns the counters of a command, which are created for its first call.
func (c *Counters) of(index int) *command {
	p := &c.commands[index]
	if known := p.Load(); known != nil {
		return known
	}
	p.CompareAndSwap(nil, new(command))
	return p.Load()
}

// Decided counts a decision of a command. stripe is any number, such as that of the connection.
func (c *Counters) Decided(index, stripe int, o Decision) { c.of(index).decisions.Count(stripe, o) }

// Rejected counts a call that was refused before it ran.
func (c *Counters) Rejected(index, stripe int) { c.of(index).stripes[stripe%stripes].rejected.Add(1) }

// Failed counts a call that has run and replied with an error.
func (c *Counters) Failed(index, stripe int) { c.of(index).stripes[stripe%stripes].failed.Add(1) }

// add counts calls that have run. All have the same latency bucket.
func (c *Counters) add(stripe int, r run) {
	s := &c.of(r.index).stripes[stripe%stripes]
	s.calls.Add(r.calls)
	s.nanoseconds.Add(int64(r.took))
	if !c.untracked.Load() {
		s.latency.add(r.bucket, r.calls, r.took)
	}
}

// TrackLatency sets whether the latencies of commands are counted. By default they are.
func (c *Counters) TrackLatency(yes bool) { c.untracked.Store(!yes) }

// TracksLatency reports whether the latencies of commands are counted.
func (c *Counters) TracksLatency() bool { return !c.untracked.Load() }

// Reset sets all counters to 0, except those of the disk. Concurrent counts may be lost.
func (c *Counters) Reset() {
	for i := range c.commands {
		c.commands[i].Store(nil)
	}
	c.Errors.Reset()
	c.resetGroups()
}

// CommandCounts is a snapshot of the counters of one command.
type CommandCounts struct {
	Calls     int64         // calls that have run
	Time      time.Duration // sum of their durations
	Rejected  int64         // calls that were refused before they ran
	Failed    int64         // how many of Calls replied with an error
	Latency   Distribution  // durations of Calls, while latencies are tracked
	Decisions DecisionCounts
}

// Command returns the counters of a command; nil if it was never called.
func (c *Counters) Command(index int) *CommandCounts {
	known := c.commands[index].Load()
	if known == nil {
		return nil
	}
	sum := &CommandCounts{Decisions: known.decisions.Snapshot()}
	for i := range known.stripes {
		s := &known.stripes[i]
		sum.Calls += s.calls.Load()
		sum.Time += time.Duration(s.nanoseconds.Load())
		sum.Rejected += s.rejected.Load()
		sum.Failed += s.failed.Load()
		s.latency.addTo(&sum.Latency)
	}
	return sum
}
