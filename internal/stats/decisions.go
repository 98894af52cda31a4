package stats

import "sync/atomic"

// Decision is the decision of a limiter on a call.
type Decision uint8

const (
	Admitted     Decision = iota
	Denied                // the call is over the limit
	ShadowDenied          // admitted only because the policies that denied it are in SHADOW mode
	kinds
)

// stripes is the number of separate values of which a counter is the sum.
const stripes = 8

// Decisions counts decisions by kind. Stripes keep goroutines from contending for a cache line;
// the sum is exact. The zero value is ready to use.
type Decisions [stripes]struct {
	counts [kinds]atomic.Int64
	_      [64 - 8*kinds]byte // padding to a cache line
}

// Count counts a decision. stripe is any number, such as that of the connection.
func (d *Decisions) Count(stripe int, o Decision) { d[stripe%stripes].counts[o].Add(1) }

// Snapshot returns the current counts.
func (d *Decisions) Snapshot() (sum DecisionCounts) {
	for i := range d {
		counts := &d[i].counts
		sum.Admitted += counts[Admitted].Load()
		sum.Denied += counts[Denied].Load()
		sum.ShadowDenied += counts[ShadowDenied].Load()
	}
	return sum
}

// Reset sets all counts to 0. Concurrent counts may be lost.
func (d *Decisions) Reset() {
	for i := range d {
		for o := range d[i].counts {
			d[i].counts[o].Store(0)
		}
	}
}

// DecisionCounts is a snapshot of Decisions. Each decision is counted in one field.
type DecisionCounts struct{ Admitted, Denied, ShadowDenied int64 }

// Plus returns the sum of two snapshots.
func (d DecisionCounts) Plus(e DecisionCounts) DecisionCounts {
	return DecisionCounts{d.Admitted + e.Admitted, d.Denied + e.Denied, d.ShadowDenied + e.ShadowDenied}
}
