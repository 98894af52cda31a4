package command

import (
	"sync/atomic"

	"rlserver/engine/limit"
)

// tally counts the decisions of a command. Sessions count in different stripes, so that they do not
// contend for a cache line; the sum is exact. The zero value is ready to use.
type tally struct{ stripes [tallyStripes]stripe }

type stripe struct {
	admitted, denied atomic.Int64
	_                [48]byte // the rest of a cache line
}

const tallyStripes = 16

// count counts a decision of a session.
func (t *tally) count(session int64, allowed bool) {
	if s := &t.stripes[session%tallyStripes]; allowed {
		s.admitted.Add(1)
	} else {
		s.denied.Add(1)
	}
}

// Sum returns how many calls were admitted and denied.
func (t *tally) Sum() (admitted, denied int64) {
	for i := range t.stripes {
		admitted += t.stripes[i].admitted.Load()
		denied += t.stripes[i].denied.Load()
	}
	return admitted, denied
}

// Tallies holds a tally for each command that has decided a call, by Command.Index.
type Tallies []atomic.Pointer[tally]

func (ts Tallies) of(c *Command) *tally {
	p := &ts[c.Index]
	if t := p.Load(); t != nil {
		return t
	}
	p.CompareAndSwap(nil, new(tally))
	return p.Load()
}

// Reset sets all counts to 0. A decision that is counted meanwhile may be lost.
func (ts Tallies) Reset() {
	for i := range ts {
		ts[i].Store(nil)
	}
}

// Decided counts a decision, unless its cost is 0.
func (c *Call) Decided(cost int64, d limit.Decision) {
	if cost > 0 {
		c.Env.Tallies.of(c.Command).count(c.Client, d.Allowed)
	}
}
