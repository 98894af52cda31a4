package engine

import (
	"slices"

	"rlserver/engine/limit"
)

// manner is how a call against limits is decided.
type manner struct {
	peek   bool // the whole call is one
	shadow bool // for a policy in SHADOW, whose denials have no effect
	charge bool // a call that does not fit is not denied: it will be recorded beyond the limit
}

// Charge records a call as All does, but beyond the limits too, because it has happened already.
// Then nothing remains, and nothing is admitted until the algorithm has worked it off: hits leave
// the window when their time has come, and tokens flow back at their rate. The answer is that of
// All for a call that the limits admit. Otherwise it is not Allowed, and RetryAfter is until
// another call like it would be admitted after it; limit.Never if its cost is above a limit.
//
// ErrBeyondCount: the hits of one of the limits would be more than can be counted; nothing changes.
func (tx *Tx) Charge(limits []Limit) (limit.Decision, error) {
	m := manner{peek: !asks(limits), charge: true}
	d, err := tx.all(limits, m)
	if err != nil || d.Allowed || m.peek {
		return d, err
	}
	return tx.chargeBeyond(limits, m)
}

// chargeBeyond charges a call that all has just found not to be Allowed: it is decided with the
// largest limits, where it is above the limit, and then by its own limits again.
func (tx *Tx) chargeBeyond(limits []Limit, m manner) (limit.Decision, error) {
	raised := slices.Clone(limits)
	for i := range raised {
		raised[i].Ban = nil // a ban denies, but what has happened counts
		if p := tx.partOf(raised[i].Key); !p.answer.Allowed {
			*raised[i].Bound() = limit.MaxCount
		}
	}
	d, err := tx.all(raised, m)
	switch {
	case err != nil:
		return limit.Decision{}, err
	case !d.Allowed:
		return limit.Decision{}, ErrBeyondCount
	}
	copy(raised, limits)
	for i := range raised {
		raised[i].ID = nil // another call, not a retry
	}
	m.charge = false
	tx.DryRun(func() { d, err = tx.all(raised, m) })
	return d, err
}
