package eviction

import "rlserver/engine/limit"

// Pressure is how close a limiter was to a denial at its last call. It is neither in the log nor in
// a snapshot, because no decision depends on it. Eviction uses it, because evicting a limiter
// admits calls that it would deny. A key that is not a limiter is Unused.
type Pressure uint8

// After returns the pressure after one more decision. fresh: it is the first.
func (s Pressure) After(d *limit.Decision, fresh bool) Pressure {
	switch {
	case !d.Allowed && d.RetryAfter != limit.Never:
		return Denying
	case !d.Allowed: // the cost is above the limit: no information about the rest
		return s
	case d.Remaining == 0 && fresh:
		return spent
	case d.Remaining == 0:
		return max(s, PressureFull)
	case d.Remaining <= d.Limit/2:
		return PressureHigh
	}
	return pressureLow
}

const (
	Unused       Pressure = iota
	pressureLow           // less than half is used
	spent                 // the first call has used all
	PressureHigh          // half or more is used
	PressureFull          // nothing remains
	Denying               // a call was denied, and since then no call has left anything remaining
)

const (
	PressureBits = 3
	PressureMask = 1<<PressureBits - 1
)
