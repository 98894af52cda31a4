package budgets

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxFindings bounds the findings that are kept.
const maxFindings = 10

// Report is what was found.
type Report struct {
	Naive bool
	// calls, and what became of them
	Admitted, Denied, Killed, Retried, Late, Twice atomic.Int64
	// entries of RL.HOLDS that were compared, and limits that were reserved in full
	Listed, Probes atomic.Int64

	took            time.Duration
	abandoned, back int
	used            int64   // tokens
	counted         int64   // micro-dollars
	full            float64 // the most that was taken of a limit, as a part of it

	mu       sync.Mutex
	found    int
	findings []string
}

func (r *Report) find(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found++; r.found <= maxFindings {
		r.findings = append(r.findings, fmt.Sprintf(format, args...))
	}
}

// Findings are what must not be, the first ten of them.
func (r *Report) Findings() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.findings...)
}

// Overshoot is the most that was admitted at a moment, as a part of the limit: at most 1 if no
// limit was exceeded.
func (r *Report) Overshoot() float64 { return r.full }

func (r *Report) fullest(part float64) { r.full = math.Max(r.full, part) }

// String is the summary.
func (r *Report) String() string {
	var b strings.Builder
	calls := r.Admitted.Load() + r.Denied.Load()
	fmt.Fprintf(&b, "%d calls in %.0f s: %d admitted, %d denied; %d tokens used\n", calls, r.took.Seconds(),
		r.Admitted.Load(), r.Denied.Load(), r.used)
	fmt.Fprintf(&b, "%.1f %% of a limit at most at a moment\n", 100*r.full)
	if !r.Naive {
		fmt.Fprintf(&b, "%d clients killed, %d reservations sent again, %d settled late, %d settled twice\n",
			r.Killed.Load(), r.Retried.Load(), r.Late.Load(), r.Twice.Load())
		fmt.Fprintf(&b, "%d of %d abandoned reservations came back by themselves, %d probes at their times, "+
			"%d entries of RL.HOLDS compared\n", r.back, r.abandoned, r.Probes.Load(), r.Listed.Load())
	}
	fmt.Fprintf(&b, "%d micro-dollars counted, %d findings\n", r.counted, r.found)
	for _, what := range r.Findings() {
		fmt.Fprintf(&b, "  %s\n", what)
	}
	return b.String()
}
