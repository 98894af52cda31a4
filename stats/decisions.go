package stats

import "sync/atomic"

// Outcome is what a limiter has decided about a call.
type Outcome uint8

const (
	Admitted     Outcome = iota
	Denied               // the call may not go ahead
	ShadowDenied         // it may, but only because a policy that denied it is in SHADOW mode
	outcomes
)

// stripes is how many places a counter has.
const stripes = 8

// Decisions counts decisions by outcome. Its stripes keep goroutines from contending for a cache
// line; the sum is exact. The zero value is ready to use.
type Decisions [stripes]struct {
	counts [outcomes]atomic.Int64
	_      [64 - 8*outcomes]byte // the rest of a cache line
}

// Count counts a decision in a stripe: any number of the caller's, such as that of its connection.
func (d *Decisions) Count(stripe int, o Outcome) { d[stripe%stripes].counts[o].Add(1) }

// Snapshot returns what has been counted.
func (d *Decisions) Snapshot() (sum DecisionCounts) {
	for i := range d {
		counts := &d[i].counts
		sum.Admitted += counts[Admitted].Load()
		sum.Denied += counts[Denied].Load()
		sum.ShadowDenied += counts[ShadowDenied].Load()
	}
	return sum
}

// Reset sets all counts to 0. A decision that is counted meanwhile may be lost.
func (d *Decisions) Reset() {
	for i := range d {
		for o := range d[i].counts {
			d[i].counts[o].Store(0)
		}
	}
}

// DecisionCounts is a snapshot of Decisions. Each decision is in one of the fields.
type DecisionCounts struct{ Admitted, Denied, ShadowDenied int64 }

// Plus returns the sum of two snapshots.
func (d DecisionCounts) Plus(e DecisionCounts) DecisionCounts {
	return DecisionCounts{d.Admitted + e.Admitted, d.Denied + e.Denied, d.ShadowDenied + e.ShadowDenied}
}
