package command

import (
	"sync/atomic"

	"rlserver/engine/limit"
)

// tally counts decisions of one sort: those of a command, say. Sessions count in different places, so that they do not wait for each
// other's processors; the sum is exact. The zero value has counted nothing.
type tally struct{ stripes [tallyStripes]stripe }

type stripe struct {
	admitted, denied atomic.Int64
	_                [48]byte // the rest of a cache line
}

const tallyStripes = 16

// count counts a decision of a session's.
func (t *tally) count(session int64, allowed bool) {
	if s := &t.stripes[session%tallyStripes]; allowed {
		s.admitted.Add(1)
	} else {
		s.denied.Add(1)
	}
}

func (t *tally) Sum() (admitted, denied int64) {
	for i := range t.stripes {
		admitted += t.stripes[i].admitted.Load()
		denied += t.stripes[i].denied.Load()
	}
	return admitted, denied
}

// Tallies hold a tally for each command that has decided anything, by its index.
type Tallies []atomic.Pointer[tally]

func (ts Tallies) of(c *Command) *tally {
	p := &ts[c.Index]
	if t := p.Load(); t != nil {
		return t
	}
	p.CompareAndSwap(nil, new(tally))
	return p.Load()
}

// Reset begins to count anew. A decision that is counted at this moment may be lost.
func (ts Tallies) Reset() {
	for i := range ts {
		ts[i].Store(nil)
	}
}

// Decided counts a decision, unless it was a peek.
func (c *Call) Decided(cost int64, d limit.Decision) {
	if cost > 0 {
		c.Env.Tallies.of(c.Command).count(c.Client, d.Allowed)
	}
}
