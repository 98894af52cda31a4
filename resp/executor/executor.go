package executor

import (
	"math"
	"sync/atomic"

	"rlserver/engine"
	"rlserver/resp/command"
)

// Executor is what the calls of a server share. It is safe for concurrent use.
type Executor struct {
	env     *command.Env
	loading atomic.Int64 // Unix ms when loading began; 0: the data is loaded

	reportAfter atomic.Int64 // ns that calls must take to be reported, see report.go
	monitors    atomic.Pointer[[]Monitor]
}

// New returns an executor for the calls of a server, whose environment may be completed later.
func New(env *command.Env) *Executor {
	x := &Executor{env: env}
	env.Executor = x
	return x
}

// SetLoading sets whether the data is being loaded: calls then get LOADING.
func (x *Executor) SetLoading(yes bool) {
	if yes {
		x.loading.Store(x.env.Clock())
	} else {
		x.loading.Store(0)
	}
}

// LoadingSince returns when loading began, in Unix ms; 0 if the data is loaded.
func (x *Executor) LoadingSince() int64 { return x.loading.Load() }

// Unavailable returns why calls that have and lack these flags cannot run now: the disk refuses
// changes, or the data is being loaded. nil: they can run.
func (x *Executor) Unavailable(has, lacks command.Flags) error {
	if has&(command.Write|command.Health) != 0 {
		if why := x.env.Refusal(); why != "" {
			return engine.Error("MISCONF " + why)
		}
	}
	if lacks&command.Loading != 0 && x.loading.Load() != 0 {
		return command.ErrLoading
	}
	return nil
}

// MaxBulk returns the maximum length in bytes of an argument of the command with a name.
func (x *Executor) MaxBulk(name []byte) int64 {
	if c := command.Table.Find(name); c == nil || !c.BoundsWords() {
		return math.MaxInt64
	}
	return max(command.MaxWordLen, x.env.Settings.MaxKey.Load())
}
