package executor

import (
	"slices"
	"time"

	"rlserver/engine"
	"rlserver/engine/change"
	"rlserver/internal/stats"
	"rlserver/resp/command"
	"rlserver/resp/events"
)

// Origin is who brings the calls of a Runner.
type Origin interface {
	// MakeRoom evicts keys for a call that may take memory. It reports false if too little may be
	// evicted. No lock is held.
	MakeRoom(p command.Prepared) (room bool)
	// Describe returns a line about the client, as in CLIENT LIST, for ACL LOG.
	Describe() string
	// Address and Name are those of the client in SLOWLOG, Source is its address in MONITOR.
	Address() string
	Name() string
	Source() string
	// HoldLines counts the memory of lines for monitors, in bytes: 0 when they are freed. No lock
	// is held.
	HoldLines(bytes int)
}

// Runner runs the calls of one origin, one after another. Only one goroutine may use it. The fields
// of Call that do not belong to one call (Env, Tx, DB, Account, Conn and others) are set by the
// origin before the first call, and when they change.
type Runner struct {
	command.Call // the call that runs; between calls, the buffers that all calls use

	Hasher command.Hasher // has the keys of the calls under one hold of locks
	Meter  stats.Meter

	executor *Executor
	origin   Origin
	access   *command.AccessCheck // nil until the first call of a restricted user
	clock    reading
	moment   int64              // of Call.Moment
	shown    []byte             // lines for monitors
	executed []command.Prepared // by RunAll, until monitors have seen them
	unlocked bool               // postponed replies are written
}

// reading holds the clocks as read when a call began or ended.
type reading struct {
	now     int64 // Unix ms
	elapsed time.Duration
	fresh   bool // read at the end of the last call, which the next one follows at once
}

// Init sets who brings the calls, to a server with an executor. The other fields of the Runner are
// those of a zero value, or set.
func (r *Runner) Init(env *command.Env, origin Origin) {
	r.executor, r.origin = env.Executor.(*Executor), origin
	r.Meter.Counters = env.Stats
}

// ReadClock returns the server time in Unix ms and the elapsed time at the beginning of a call. It
// reads no clock if the last call has just ended.
func (r *Runner) ReadClock() (now int64, elapsed time.Duration) {
	if r.clock.fresh {
		r.clock.fresh = false
	} else {
		r.clock.now, r.clock.elapsed = r.executor.env.Time.Read()
	}
	return r.clock.now, r.clock.elapsed
}

// Paused notes that time may have passed since the last call: the next one reads the clocks.
func (r *Runner) Paused() { r.clock.fresh = false }

// Unlocked reports whether replies are being written that were postponed: no lock is held.
func (r *Runner) Unlocked() bool { return r.unlocked }

// Release drops the buffers of a batch of calls: the origin may now be idle for a long time.
func (r *Runner) Release() {
	r.Words, r.Args, r.Keys, r.Ready = nil, command.Args{}, nil, nil
	r.Hasher.Release()
}

// Run runs a call under the locks of its keys, and appends its reply. If it reports true the call
// has to wait, and there is no reply. A panic of the handler costs the call an error.
func (r *Runner) Run(p *command.Prepared, keys []engine.Key) (waits bool) {
	return Run(&r.Call, p, keys)
}

// Run is Runner.Run for a call without a Runner.
func Run(c *command.Call, p *command.Prepared, keys []engine.Key) (waits bool) {
	mark, postponed, returned := len(c.Reply.B), len(c.Postponed), false
	defer func() {
		if returned {
			return
		}
		if fault := recover(); fault != nil {
			Panicked(c, p, fault, mark, postponed)
			waits = false
		}
	}()
	waits = Handle(c, p, keys)
	returned = true
	return waits
}

// Panicked replies with an error to a call whose handler has panicked, and logs the fault. mark and
// postponed are how many bytes of replies, and how many postponed ones, there were before it.
func Panicked(c *command.Call, p *command.Prepared, fault any, mark, postponed int) {
	c.Changed = true // it may have
	p.Inside, c.Inside = c.Inside, nil
	c.Postponed, c.Ready = c.Postponed[:postponed], nil
	c.Fault(fault, mark)
}

// Handle is Run for a caller that recovers from panics by Panicked. It is the only caller of
// handlers.
func Handle(c *command.Call, p *command.Prepared, keys []engine.Key) (waits bool) {
	mark, before := len(c.Reply.B), c.Tx.Applied()
	c.Command, c.Words, c.Keys = p.Command, p.Words, keys
	c.Args.List, c.Args.Keys, c.Args.Wait, c.Args.Err = p.Words[p.Name:], keys, 0, nil
	c.CountsOnce, c.All = false, p.All
	c.Repeats, p.Repeats = p.Repeats, false // nothing is known of the call before if it runs again
	if c.Tracked.Remembers() {
		remember(c, p, true)
	}
	var err error
	if c.NoTouch || c.Executing {
		c.Tx.NoTouch(c.NoTouch, func() { err = p.Command.Run(c) })
	} else {
		err = p.Command.Run(c)
	}
	c.Changed = c.Tx.Applied() != before
	if c.Inside != nil {
		p.Inside, c.Inside = c.Inside, nil
	}
	NameChanges(c.Tx, p, c.Executing)
	if c.Tracked.Remembers() {
		c.Tx.Tell() // what the client reads from now on has not changed
		remember(c, p, false)
	}
	if err == nil {
		return false
	}
	if err == command.ErrWait {
		return true
	}
	c.Reply.B = c.Reply.B[:mark] // half a reply
	c.Refuse(err)
	return false
}

// remember has the keys tracked that a call reads. A call that takes locks itself may read them
// before or after any change that others make: they are tracked from before it on, and again
// afterwards, if one was told since.
func remember(c *command.Call, p *command.Prepared, before bool) {
	const own = command.OwnLocks | command.Stepwise
	if p.Command.Flags&command.Readonly != 0 && (!before || p.Command.Flags&own != 0) {
		for _, k := range c.Keys {
			c.Tracked.Remember(c.Conn.Messages(), k.Name)
		}
	}
}

// NameChanges gives what a call has changed its events, if anybody wants to know. within: the call
// is one of a transaction or script, so that its reply is none by itself.
func NameChanges(tx *engine.Tx, p *command.Prepared, within bool) {
	if tx.Unnamed() {
		tx.Name(func(list []change.Change) []change.Change {
			named := events.Name(p.Command.FullName(), p.Words, list)
			for i := range named {
				named[i].Late = named[i].Late && !within
			}
			return named
		})
	}
}

// Retry runs a call that has waited, under the locks of its keys: what made the server available
// when the call arrived may have changed.
func (x *Executor) Retry(c *command.Call, p *command.Prepared, keys []engine.Key) (waits bool) {
	c.Command = p.Command
	if err := x.Unavailable(p.Command.Flags, ^p.Command.Flags); err != nil {
		c.Refuse(err)
		return false
	}
	return Run(c, p, keys)
}

// RunAll runs calls one after another under locks that hold all their keys, and appends the reply
// of each. A call that its user may not run any more gets an error. Calls that are not fast are
// timed one by one, the others together.
func (r *Runner) RunAll(calls []command.Prepared, keys []engine.Key) {
	defer r.Execute()()
	begun, timed := r.executor.env.Time.Elapsed(), 0
	for i := range calls {
		p := &calls[i]
		alone := p.Command.Flags&command.Fast == 0
		if alone && timed < i {
			begun, timed = r.Measure(calls[timed:i], begun), i
		}
		r.RunQueued(p, keys[:p.Keys:p.Keys])
		keys, r.executed, p.DB = keys[p.Keys:], calls[:i+1], r.DB
		if alone {
			begun, timed = r.Measure(calls[i:i+1], begun), i+1
		}
	}
	if timed < len(calls) {
		r.Measure(calls[timed:], begun)
	}
}

// Execute begins an EXEC, and returns what ends it. All its calls see the same TIME.
func (r *Runner) Execute() (end func()) {
	r.moment = 0
	r.Executing, r.Moment = true, &r.moment
	return func() { r.Executing, r.Moment = false, nil }
}

// RunQueued runs a call as RunAll does, and does not measure it. It is called after Execute.
func (r *Runner) RunQueued(p *command.Prepared, keys []engine.Key) {
	r.Command = p.Command
	if denial := r.Check(p); denial != nil {
		r.LogDenied(denial.Verdict, denial.Object, r.Account.Name(), Multi)
		r.Refuse(denial.AtExec())
		return
	}
	r.Ready = nil // of a call that was refused after it had been prepared
	r.Tx.Next(r.DB, p.Command.Flags&command.Write != 0)
	r.Run(p, keys)
}

// WritePostponed writes the replies that handlers have postponed, and inserts them among the other
// replies. No lock is held.
func (r *Runner) WritePostponed() {
	list := r.Postponed
	if len(list) == 0 {
		return
	}
	r.Postponed = nil
	if r.Reply.Truncated { // the replies are dropped, and their places are gone
		return
	}
	r.unlocked = true
	defer func() { r.unlocked = false }()
	first := list[0].At
	rest := slices.Clone(r.Reply.B[first:])
	r.Reply.B = r.Reply.B[:first]
	for i, p := range list {
		end := first + len(rest)
		if i+1 < len(list) {
			end = list[i+1].At
		}
		mark := len(r.Reply.B)
		if err := p.Write(&r.Call); err != nil {
			r.Reply.B = r.Reply.B[:mark]
			r.Refuse(err)
		}
		r.Reply.B = append(r.Reply.B, rest[p.At-first:end-first]...)
	}
}
