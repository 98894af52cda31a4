package eviction

import "rlserver/engine/limit"

// Pressure is how near a limiter was to denying at its last call. It is neither in the log nor in a
// snapshot, as no decision depends on it: eviction goes by it, as evicting a limiter admits calls
// that it would deny. A key that is no limiter is unused.
type Pressure uint8

// After is the pressure after one more decision. fresh: it is the first.
func (s Pressure) After(d *limit.Decision, fresh bool) Pressure {
	switch {
	case !d.Allowed && d.RetryAfter != limit.Never:
		return Denying
	case !d.Allowed: // it says nothing about what is left
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
	pressureLow           // less than half of it is used
	spent                 // its first call has used all of it
	PressureHigh          // half of it is used, or more
	PressureFull          // there is nothing left
	Denying               // a call was denied, and since then none has found room to spare
)

const (
	PressureBits = 3
	PressureMask = 1<<PressureBits - 1
)
